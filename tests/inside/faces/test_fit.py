"""`fit`: from a table to a model, and what is said on the way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from kit.shared.fit import table

import streamcut
from streamcut.foundation.systems import resident_bytes
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.row_view import HeldOut, drawn_groups


def test_what_was_trained_to_choose_is_not_trained_again(monkeypatch):
    monkeypatch.setattr("streamcut.tuning.train", None)
    assert streamcut.fit(table(), "y", C=[0.1, 1.0]).model.converged


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


@pytest.mark.parametrize("rows", [10, 180, 5000])
def test_just_the_share_is_held_out_wherever_chunks_begin(rows):
    held = HeldOut(0.2, seed=3, rows=rows)
    folds = np.concatenate([held.of(SimpleNamespace(n_rows=count), first) for first, count in ((0, 7), (7, rows - 7))])
    assert np.count_nonzero(folds == 0) == rows // 5
    keys = np.arange(rows, dtype=np.uint64) // 5
    which = drawn_groups(keys, 0.2, 3)
    assert abs(which.sum() - rows / 5) <= 5
    assert all(len(set(which[keys == key])) == 1 for key in keys[::5][:20])
