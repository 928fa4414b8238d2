"""Runs with each loss of numbers: stopped and resumed, on Dask, along a path over C, from a model, saved and verified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def rows(n: int = 400, seed: int = 0):
    """(X, counts, weights): every loss takes counts."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, rng.poisson(np.exp(0.5 * (X @ rng.standard_normal(15)))).astype(float), rng.uniform(0.2, 3.0, n)


def data(n: int = 400, shard_nnz: int = 400) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n], y[:n], weight=u[:n], shard_nnz=shard_nnz)


def test_a_regression_starts_from_a_regression():
    X, y, _ = rows()
    classes = train(streamcut.rows(X, y > 0.0), max_passes=3)
    with pytest.raises(UsageError, match="model of task binary by bundle-dca; it takes a linear one for numbers"):
        train(data(), task="regression", warm_start=classes)
    with pytest.raises(UsageError, match="model of task regression by newton; it takes a linear one for two classes"):
        train(streamcut.rows(X, y > 0.0), warm_start=train(data(), task="regression", max_passes=3))
