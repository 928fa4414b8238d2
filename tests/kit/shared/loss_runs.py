"""What tests/losses/test_loss_runs.py and tests/inside/losses/test_loss_runs.py share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import streamcut

SOLVERS = {
    "ocas": {"solver": "ocas", "max_cuts": 6},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "bundle-dca": {"solver": "bundle-dca", "max_cuts": 6, "row_cache": "30%"},
}
OPTIONS = {"task": "regression", "C": 0.3, "lanes": 2, "max_passes": 9, "tol": 1e-9, "tol_relative": None}


def rows(n: int = 400, seed: int = 0):
    """(X, counts, weights): every loss takes counts."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, rng.poisson(np.exp(0.5 * (X @ rng.standard_normal(15)))).astype(float), rng.uniform(0.2, 3.0, n)


def data(n: int = 400, shard_nnz: int = 400) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n], y[:n], weight=u[:n], shard_nnz=shard_nnz)


def bits(model) -> tuple:
    path = [[line[name] for name in ("passes", "primal", "lower_bound", "step", "cuts")] for line in model.history]
    return model.weights.tobytes(), model.witness.a.tobytes(), model.certificate, path
