"""What tests/solvers/test_nystroem.py and tests/inside/solvers/test_nystroem.py share."""

import numpy as np


def rings(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.2 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


OPTIONS = {"kernel": "rbf", "gamma": 0.5, "nystroem": 40, "C": 1.0}
