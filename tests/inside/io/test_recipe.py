"""A model knows how its features were made: raw input is prepared alike, other data are refused by name."""

from __future__ import annotations

from dataclasses import replace

import kit.shared.recipe
import numpy as np
import pytest

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import BadInputError, CorruptError, NotFoundError, UsageError
from streamcut.io.recipe.comparison import difference, require_same
from streamcut.io.recipe.recipe import LabelRule, NewerRecipeError, Recipe
from streamcut.io.stores.verify import verify_store

folder = kit.shared.recipe.folder


def test_a_model_of_hashed_features_hashes_raw_text(folder):
    assert load_model(folder / "h.npz").recipe == Recipe("hashed", 8, 1, "float32", "sum")
    scores = streamcut.predict(folder / "h.npz", folder / "test.zarr", answer="scores")
    np.testing.assert_array_equal(streamcut.predict(folder / "h.npz", folder / "named.test.svm", answer="scores"), scores)
    found = streamcut.evaluate(folder / "h.npz", folder / "named.test.svm")
    assert found.measures() == streamcut.evaluate(folder / "h.npz", folder / "test.zarr").measures()
    assert found.accuracy > 0.95
    with pytest.raises(UsageError, match="hashes the features"):
        streamcut.predict(folder / "h.npz", folder / "named.test.svm", index_base=0)


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


def test_recipes_survive_json_and_refuse_what_they_do_not_know():
    recipe = Recipe(labels=LabelRule((("a", -1.0), ("ß", 2.5)), None, True), names=("x", "y\n"), dtype="float64")
    assert Recipe.from_json(recipe.to_json()) == recipe
    with pytest.raises(NewerRecipeError, match="version 5"):
        Recipe.from_json(b'{"version":5}')
    for content in (b"[]", b'{"version":1,"more":1}', b'{"version":1,"form":"hashed"}', b'{"version":1,"names":[1]}', b"{", b""):
        with pytest.raises(ValueError, match=r"."):
            Recipe.from_json(content)
    assert LabelRule((("a", 1.0), ("b", 1.0))).names == {}


def test_names_are_compared_where_both_have_them():
    a, b = Recipe(names=("x", "y")), Recipe(names=("x", "z", "w"))
    assert difference(a, Recipe()) is difference(Recipe(), b) is difference(a, Recipe(names=("x", "y", "w"))) is None
    assert difference(a, b) == "feature 1 (0-based) is 'y' there and 'z' here"
    with pytest.raises(BadInputError, match="feature 1"):
        require_same(a, b, "rows")
    require_same(None, None, "rows")


def test_a_recipe_of_a_later_version_asks_for_an_upgrade(folder, tmp_path):
    model = load_model(folder / "h.npz")

    class Later(Recipe):
        def to_json(self):
            return b'{"version":9}\n'

    save_model(replace(model, recipe=Later("hashed", 8)), tmp_path / "m.npz")
    with pytest.raises(NotFoundError, match="recipe version 9: upgrade"):
        load_model(tmp_path / "m.npz")
