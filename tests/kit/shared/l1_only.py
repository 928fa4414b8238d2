"""What tests/solvers/test_l1_only.py and tests/inside/solvers/test_l1_only.py share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

SMOOTH = {
    "squared": {}, "huber": {"delta": 1.0}, "squared-epsilon-insensitive": {"epsilon": 0.1}, "poisson": {}, "logistic": {},
    "squared-hinge": {}, "smoothed-hinge": {},
}  # fmt: skip
OF_LABELS = ("logistic", "squared-hinge", "smoothed-hinge")
HOW = [("newton", "none"), ("working-set", "none"), ("working-set", "free")]


def rows(loss: str, n: int = 200, d: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, :3] @ np.array([1.0, -0.7, 0.4]) + 0.4 * rng.standard_normal(n)
    if loss in OF_LABELS:
        return X, np.where(score > 0.0, 1.0, -1.0)
    return X, rng.poisson(np.exp(np.clip(score, -3.0, 2.0))).astype(float) if loss == "poisson" else score


def task(loss: str) -> dict:
    return {"task": "binary" if loss in OF_LABELS else "regression", "loss": loss, **SMOOTH[loss]}


def text(n: int = 400, d: int = 3000, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Rows with few of many features, of which twenty matter."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.01, format="csr", rng=rng, data_sampler=lambda size: rng.standard_normal(size))
    X[:, 40:] *= 0.7
    score = 3.0 * (X[:, :20] @ np.linspace(2.0, 0.5, 20)) + 0.3 * rng.standard_normal(n)
    return X, score
