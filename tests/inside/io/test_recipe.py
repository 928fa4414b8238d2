"""Damage to the recipe of a store is found, and a later version is named."""

from __future__ import annotations

from dataclasses import replace

import kit.shared.recipe
import pytest

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.verify import verify_store

folder = kit.shared.recipe.folder


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_damage_to_the_recipe_is_found(folder, tmp_path, backend):
    streamcut.convert(folder / "named.svm", tmp_path / "s", hash_bits=8, backend=backend)
    place = tmp_path / "s/recipe.json"
    assert verify_store(tmp_path / "s", read_data=True).sound
    content = place.read_bytes()
    place.write_bytes(content.replace(b'"hash_bits":8', b'"hash_bits":9'))
    assert "recipe.json" in verify_store(tmp_path / "s", read_data=False).problems[0]
    with pytest.raises(CorruptError, match=r"recipe\.json"):
        streamcut.train(str(tmp_path / "s"))
    place.unlink()
    with pytest.raises(CorruptError, match=r"recipe\.json: missing"):
        streamcut.predict(folder / "h.npz", tmp_path / "s")


def test_a_recipe_of_a_later_version_asks_for_an_upgrade(folder, tmp_path):
    model = load_model(folder / "h.npz")

    class Later(Recipe):
        def to_json(self):
            return b'{"version":9}\n'

    save_model(replace(model, recipe=Later("hashed", 8)), tmp_path / "m.npz")
    with pytest.raises(NotFoundError, match="recipe version 9: upgrade"):
        load_model(tmp_path / "m.npz")
