"""Kernels of tables at their borders: rows of many words and of many columns, features that meet, texts side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer

from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, Column, Table
from streamcut.io.tables.encoder import Encoder, Place


def encoded(batch: pa.RecordBatch, table: Table, bits: int) -> sp.csr_array:
    found = Encoder(Recipe("table", bits, table=table)).encode(batch, Place("x", np.arange(batch.num_rows), 0))
    values = np.ones(len(found.indices)) if found.data is None else found.data
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        assert (np.diff(found.indices[start:stop]) > 0).all()
    return sp.csr_array((values, found.indices, found.indptr), shape=(batch.num_rows, 1 << bits))


@pytest.mark.parametrize("bits", [3, 10, 20])
@pytest.mark.parametrize("categories", [1, 2, 13, 100])
def test_rows_of_many_columns_are_those_of_feature_hasher(categories, bits):
    """Numbers among them, some of them 0, some of them of a feature that categories or other numbers have, too."""
    rng, n = np.random.default_rng(categories), 600
    names, numbers = [f"c{k}" for k in range(categories)], [f"x{k}" for k in range(categories // 2)]
    columns = {name: rng.choice(["a", "b", "cc", None], n).tolist() for name in names}
    columns |= {name: rng.integers(-2, 3, n).astype(float).tolist() for name in numbers}
    table = Table(tuple(Column(k, "numeric" if k in numbers else "categorical") for k in columns), missing="zero")
    batch = pa.record_batch(columns)
    rows = [{k: v for k, v in row.items() if v is not None} for row in batch.to_pylist()]
    expected = FeatureHasher(1 << bits, alternate_sign=False).transform(rows)
    assert abs(encoded(batch, table, bits) - expected).max() == 0


@pytest.mark.parametrize("bits", [4, 9, 20])
def test_rows_of_many_words_and_several_texts(bits):
    rng = np.random.default_rng(bits)
    sizes = [0, 1, 15, 16, 17, 127, 128, 129, 255, 256, 257, 3000]
    texts = {name: [" ".join(f"w{rng.integers(500)}" for _ in range(size)) for size in sizes] for name in ("one", "two")}
    table = Table(tuple(Column(name, "text", ngrams=(1, 2)) for name in texts))
    expected = 0
    for name, column in texts.items():
        words = HashingVectorizer(ngram_range=(1, 2)).build_analyzer()
        hasher = FeatureHasher(1 << bits, input_type="string", alternate_sign=False)
        expected = expected + hasher.transform([[f"{name}={word}" for word in words(text)] for text in column])
    assert abs(encoded(pa.record_batch(texts), table, bits) - expected).max() == 0


@pytest.mark.parametrize("more", [False, True])
def test_numbers_taken_together_are_those_taken_one_by_one(more):
    """With a column of booleans they are taken one by one."""
    columns = {
        "some": pa.array([1.5, None, -2.0, 0.0]),
        "whole": pa.array([1 << 53, (1 << 53) + 2, -3, 0], pa.int64()),
        "short": pa.array([1, 2, None, 4], pa.uint8()),
        "single": pa.array([0.1, 0.2, 0.3, float("nan")], pa.float32()),
        "huge": pa.array([1e300, 1.0, 2.0, 3.0]),
        **({"yes": pa.array([False] * 4)} if more else {}),
    }
    kinds = [Column(name, "numeric", type="number") for name in columns]
    centred = [replace(kind, centre=0.5, spread=2.0) if kind.name == "some" else kind for kind in kinds]
    rows = encoded(pa.RecordBatch.from_pydict(columns), Table(tuple(kinds)), 20).toarray()
    moved = encoded(pa.RecordBatch.from_pydict(columns), Table(tuple(centred)), 20).toarray()
    of = {key: column(key) for name in columns for key in (name, f"{name}{ABSENT}")}
    assert rows[:, of["some"]].tolist() == [1.5, 0.0, -2.0, 0.0]
    assert moved[:, of["some"]].tolist() == [0.5, 0.0, -1.25, -0.25]
    assert rows[:, of["whole"]].tolist() == [2.0**53, 2.0**53 + 2, -3.0, 0.0]
    assert rows[:, of["short"]].tolist() == [1.0, 2.0, 0.0, 4.0]
    np.testing.assert_array_equal(rows[:, of["single"]], np.array([0.1, 0.2, 0.3, 0.0], np.float32))
    assert rows[:, of["huge"]].tolist() == [1e300, 1.0, 2.0, 3.0]
    absent = {name: rows[:, of[f"{name}{ABSENT}"]].tolist() for name in columns}
    rest = {"some": [0, 1, 0, 0], "short": [0, 0, 1, 0], "single": [0, 0, 0, 1]}
    assert absent == {name: rest.get(name, [0, 0, 0, 0]) for name in columns}


def column(key: str) -> int:
    """The feature of a key among 2²⁰."""
    return FeatureHasher(1 << 20, input_type="string", alternate_sign=False).transform([[key]]).indices[0]
