"""The same data give the same answer, whatever container they come in: trained on one, scored on any other, to the bit."""

from __future__ import annotations

import kit.shared.canonical
import numpy as np

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
