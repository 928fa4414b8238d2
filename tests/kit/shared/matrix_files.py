"""What tests/io/test_matrix_files.py and tests/inside/io/test_matrix_files.py share."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import streamcut

N, D = 240, 60
TYPES = np.array(["B cell", "T cell", "NK cell"])


@pytest.fixture(scope="module")
def cells() -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(11)
    kinds = rng.integers(0, 3, N)
    dense = rng.poisson(0.15, (N, D)) + (
        rng.poisson(2.0, (N, D)) * (np.arange(D) // 20 == kinds[:, None]) * (rng.random((N, D)) < 0.3)
    )
    return sp.csr_matrix(dense.astype(np.float32)), TYPES[kinds]


def write(path, X, words, **layers) -> str:
    import anndata

    obs = pd.DataFrame({"cell_type": pd.Categorical(words)}, index=[f"c{i}" for i in range(len(words))])
    data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"GENE{j}" for j in range(X.shape[1])]), layers=layers)
    with warnings.catch_warnings(action="ignore"):
        (data.write_zarr if path.suffix == ".zarr" else data.write_h5ad)(path)
    return str(path)


def whole(path) -> np.ndarray:
    data = streamcut.open(path)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    values = [np.ones(c.nnz) if c.data is None else c.data for c in chunks]
    shapes = [(c.n_rows, data.manifest.statistics.n_features) for c in chunks]
    return np.vstack(
        [sp.csr_array((v, c.indices, c.indptr), shape=s).toarray() for v, c, s in zip(values, chunks, shapes, strict=True)]
    )
