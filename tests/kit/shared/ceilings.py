"""What tests/execution/test_ceilings.py and tests/inside/execution/test_ceilings.py share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut

ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """rows.zarr, ROWS rows of two classes, and m.npz that was trained on them."""
    folder = tmp_path_factory.mktemp("ceilings")
    rng = np.random.default_rng(0)
    X = sp.csr_array((np.ones(4 * ROWS, np.float32), rng.integers(0, 500, 4 * ROWS), np.arange(0, 4 * ROWS + 1, 4)), (ROWS, 500))
    X.sum_duplicates()
    y = np.where(X[:, :200].sum(axis=1) > rng.integers(0, 3, ROWS), 1.0, -1.0)
    with streamcut.create(folder / "rows.zarr", 500, shard_nnz=1 << 17) as out:
        out.append(X, y)
    streamcut.train(folder / "rows.zarr", max_passes=2).save(folder / "m.npz")
    return folder
