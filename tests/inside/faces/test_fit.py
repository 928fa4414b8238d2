"""Recipes: numbers that are standardised, and bits that memory and threads do not change."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.fit import table

import streamcut
from streamcut.foundation.systems import resident_bytes
from streamcut.io.recipe.recipe import Recipe


def test_standardised_numbers_have_mean_0_and_deviation_1_and_missing_ones_are_the_mean(tmp_path):
    streamcut.convert(table(), tmp_path / "a.zarr", labels="y", numeric="year,row", standardise=True, drop="*")
    data = streamcut.open(tmp_path / "a.zarr")
    chunk = data.read(0)
    names = np.array(data.recipe.names)[chunk.indices]
    values = chunk.data[names == "year"]
    known = table().year.notna().sum()
    assert abs(values.sum() / known) < 1e-3
    assert np.square(values).sum() / known == pytest.approx(1.0, abs=1e-3)
    year = next(column for column in data.recipe.table.columns if column.name == "year")
    assert year.in_words() == "numeric, standardised"
    assert Recipe.from_json(data.recipe.to_json()) == data.recipe


def test_memory_and_threads_change_no_recipe(tmp_path):
    recipes = set()
    for name, more in {"a": {}, "b": {"threads": 1, "memory": resident_bytes() + 300 * 10**6, "shard_nnz": 500}}.items():
        given = {"standardise": True, "text": "note", "text_weights": "tfidf", "id": "row"}
        streamcut.convert(table(), tmp_path / f"{name}.zarr", labels="y", **given, **more)
        recipes.add(streamcut.open(tmp_path / f"{name}.zarr").recipe.to_json())
    assert len(recipes) == 1
