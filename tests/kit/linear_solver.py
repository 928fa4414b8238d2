"""Two classes, dense and sparse, for linear solvers."""

import numpy as np
import scipy.sparse as sp


def problem(n=200, d=12, *, seed=0, density=0.4, weights=False, dtype=np.float64):
    """A noisy sparse two-class problem; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.data = X.data.astype(dtype)
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.2, 3.0, 1.0)
    return X, y, rng.uniform(0.2, 3.0, n) if weights else None


def dense(X, bias):
    X = X.toarray().astype(np.float64)
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X
