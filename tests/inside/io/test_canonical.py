"""The same data give the same answer, whatever container they come in: trained on one, scored on any other, to the bit."""

from __future__ import annotations

import json

import kit.shared.canonical
import numpy as np

import streamcut
from streamcut.io.recipe.recipe import Recipe

everywhere = kit.shared.canonical.everywhere

TYPES = {
    "flag": "boolean",
    "count": "integer",
    "size": "number",
    "day": "time",
    "site": "text",
    "price": "number",
    "when": "time",
}


def test_each_container_trains_the_same_model(everywhere):
    _, models = everywhere
    model, store = models["arrow"]
    assert {column.name: column.type for column in store.recipe.table.columns} == TYPES
    assert "count=-3" in store.recipe.names
    assert "site*flag=a\\*b*true" in store.recipe.names
    for other, its_store in models.values():
        assert replaced_number(its_store.recipe) == replaced_number(store.recipe)
        assert its_store.manifest.fingerprint == store.manifest.fingerprint
        np.testing.assert_array_equal(other.weights, model.weights)


def replaced_number(recipe: Recipe) -> bytes:
    return recipe.to_json().replace(b'"integer"', b'"number"')


def test_row_67_recipes_of_the_first_version_keep_their_keys(tmp_path):
    record = {
        "version": 1,
        "form": "table",
        "hash_bits": None,
        "labels": {"column": "y"},
        "names": ["a=True", "a=true", "a*b=p*q*r", "n", "b=3.0", "b=r"],
        "table": {
            "columns": [
                {"name": name, "role": role} for name, role in (("a", "categorical"), ("b", "categorical"), ("n", "numeric"))
            ],
            "crosses": [["a", "b"]],
        },
    }
    recipe = Recipe.from_json(json.dumps(record).encode())
    assert recipe.version == 1
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert b'"type"' not in recipe.to_json()
    (tmp_path / "t.csv").write_text("y,a,b,n\n1,True,3.0,0\n0,p*q,r,0\n1,p,q*r,0\n")
    streamcut.convert(tmp_path / "t.csv", tmp_path / "t.zarr", recipe=recipe)
    found = streamcut.open(tmp_path / "t.zarr").read(0)
    assert found.indices.tolist() == [0, 4, 2, 5, 2]
