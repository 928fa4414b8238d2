"""Rows of many columns: more than kernels sort at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import Column, Table
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
