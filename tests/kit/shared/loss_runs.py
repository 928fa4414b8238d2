"""Rows whose targets every loss of numbers takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import streamcut


def rows(n: int = 400, seed: int = 0):
    """(X, counts, weights): every loss takes counts."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, rng.poisson(np.exp(0.5 * (X @ rng.standard_normal(15)))).astype(float), rng.uniform(0.2, 3.0, n)


def data(n: int = 400, shard_nnz: int = 400) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n], y[:n], weight=u[:n], shard_nnz=shard_nnz)
