"""What tests/solvers/test_tune.py and tests/inside/solvers/test_tune.py share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import streamcut


def arrays(seed=0, n=600, groups=None):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = np.where(X @ np.random.default_rng(9).standard_normal(20) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """(train.zarr of 12 shards, test.zarr)."""
    folder = tmp_path_factory.mktemp("tune")
    for name, seed in (("train", 0), ("test", 1)):
        X, y = arrays(seed)
        dump_svmlight_file(sp.csr_matrix(X), y, str(folder / f"{name}.svm"), zero_based=False)
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), shard_nnz=420)
    return str(folder / "train.zarr"), str(folder / "test.zarr")
