"""What tests/solvers/test_columns_at_once.py and tests/inside/solvers/test_columns_at_once.py share."""

import numpy as np
import scipy.sparse as sp

DEFAULT = {"tol": None, "tol_relative": 1e-2}


def problem(n=400, *, classes=2, seed=0):
    """Features of sizes 1, 30 and 1000; numbers, or labels of so many classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    s = X @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.standard_normal(n)
    y = s if classes == 0 else np.searchsorted(np.quantile(s, np.arange(1, classes) / classes), s).astype(float)
    return sp.csr_array(X * np.array([1.0, 30.0, 1000.0])), y, rng.uniform(0.5, 2.0, n)
