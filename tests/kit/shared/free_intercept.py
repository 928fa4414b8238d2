"""What tests/solvers/test_free_intercept.py and tests/inside/solvers/test_free_intercept.py share."""

from __future__ import annotations

from functools import cache

import numpy as np

from streamcut import train

OF_NUMBERS = ("squared", "epsilon-insensitive")


@cache
def rows(loss: str, seed: int, n: int = 120, d: int = 6):
    """Rows far from 0, features of different sizes, few positive labels, targets far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(d)) + rng.choice([0.0, 3.0])
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    if loss in OF_NUMBERS:
        return X, score + 50.0
    y = np.where(score > np.quantile(score, rng.choice([0.5, 0.9])), 1.0, -1.0)
    return X, y


def trained(data, loss: str, **given):
    usual = {"intercept": "free", "tol": None, "tol_relative": 1e-7, "max_passes": 300, "workers": 1}
    task = "regression" if loss in OF_NUMBERS else "binary"
    return train(data, loss=loss, task=task, **{**usual, **given})
