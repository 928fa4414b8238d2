"""What tests/solvers/test_newton.py and tests/inside/solvers/test_newton.py share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

KINKED = ("hinge", "epsilon-insensitive", "quantile")
OF_LABELS = ("logistic", "squared-hinge", "smoothed-hinge")


def problem(n=300, d=12, *, density=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, score, rng.uniform(0.2, 3.0, n)


def targets(loss: str, score: np.ndarray) -> tuple[dict, np.ndarray]:
    """(options, what is to be learned from the scores)."""
    if loss in (*OF_LABELS, "hinge"):
        return {"loss": loss}, np.where(score > 0.1, 1.0, -1.0)
    y = np.round(np.exp(0.3 * score)) if loss == "poisson" else score + 2.0
    return {"loss": loss, "task": "regression"}, y
