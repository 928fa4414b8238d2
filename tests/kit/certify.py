"""Models of other programs on small problems, and the least objective that certify may claim."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def rows(seed: int, n: int = 40, d: int = 4, task: str = "labels", one_in: int = 2):
    """X (n, d), y, of which one in `one_in` is 1 where they are labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-1, 2, d)
    score = X @ random.normal(size=d) + random.normal(size=n)
    if task == "labels":
        return X, np.where(score > np.sort(score)[-max(2, n // one_in)], 1.0, -1.0)
    return X, np.round(np.exp(np.clip(score, -2, 2))) if task == "counts" else score + 5.0


def least(loss: str, X, y, C, u, start, free: bool):
    """(w, b) near the optimum, by a general optimiser: F there is above min F, so a true bound is below it."""
    n = len(y)
    z = np.column_stack([X, np.ones(n)]) if free else X

    def objective(v):
        s = z @ v
        m, far = s * y, np.abs(s - y)
        below, beyond = np.maximum(0.0, 1.0 - m), np.maximum(0.0, far - 0.1)
        value = {
            "logistic": lambda: np.logaddexp(0.0, -m),
            "hinge": lambda: below,
            "squared-hinge": lambda: below**2,
            "smoothed-hinge": lambda: np.where(below < 1, 0.5 * below**2, below - 0.5),
            "squared": lambda: 0.5 * far**2,
            "huber": lambda: np.where(far <= 1, 0.5 * far**2, far - 0.5),
            "epsilon-insensitive": lambda: beyond,
            "squared-epsilon-insensitive": lambda: beyond**2,
            "poisson": lambda: np.exp(np.minimum(s, 50)) - y * s,
        }[loss]()
        return 0.5 * v[: X.shape[1]] @ v[: X.shape[1]] + C * u @ value

    v = start
    for method in ("BFGS", "Nelder-Mead", "BFGS"):
        v = minimize(objective, v, method=method, options={"maxiter": 2000}).x
    return v
