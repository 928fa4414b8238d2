"""What tests/solvers/test_sampled_proof.py and tests/inside/solvers/test_sampled_proof.py share."""

from __future__ import annotations

from functools import cache

import numpy as np

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def problem(seed=0, n=80, classes=2):
    """(X, y, row weights, some of them 0)."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    scores = np.stack([np.sin(2 * X[:, 0] + c) + X[:, 1] * (c - 0.5) for c in range(classes)], axis=1)
    y = np.argmax(scores + 0.5 * rng.standard_normal((n, classes)), axis=1).astype(float)
    weight = rng.uniform(0.0, 3.0, n)
    weight[:3] = 0.0
    return X, y, weight
