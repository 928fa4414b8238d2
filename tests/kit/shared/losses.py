"""What tests/losses/test_losses.py and tests/inside/losses/test_losses.py share."""

from __future__ import annotations

import numpy as np
from kit.linear_solver import problem

# The solvers


def numbers(name, n=120, d=8, *, seed=0, weights=False):
    """A sparse regression problem that fits the loss: (X, y, u)."""
    rng = np.random.default_rng(seed)
    X, _, u = problem(n, d, seed=seed, weights=weights)
    scores = X @ rng.standard_normal(d) + 0.5
    y = rng.poisson(np.exp(0.5 * scores)).astype(float) if name == "poisson" else scores + 0.3 * rng.standard_normal(n) + 3.0
    return X, y, u
