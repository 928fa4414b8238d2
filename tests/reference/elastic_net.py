"""The elastic net, slow and obvious: dense rows, and a general-purpose solver for the dual, which is smooth in a box."""

import numpy as np
from scipy.special import xlogy


def shrunk(v, l1):
    """S(v, l1)."""
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)


LOSSES = {  # (value of a margin, conjugate of a share, its derivative, the largest share)
    "hinge": (lambda m: np.maximum(0.0, 1.0 - m), lambda f: -f, lambda f: -np.ones_like(f), 1.0),
    "squared-hinge": (lambda m: np.maximum(0.0, 1.0 - m) ** 2, lambda f: 0.25 * f * f - f, lambda f: 0.5 * f - 1.0, np.inf),
    "logistic": (
        lambda m: np.logaddexp(0.0, -m),
        lambda f: xlogy(f, f) + xlogy(1.0 - f, 1.0 - f),
        lambda f: np.log(np.maximum(f, 1e-300)) - np.log(np.maximum(1.0 - f, 1e-300)),
        1.0,
    ),
}


def primal(w, X, sign, C, u, loss, l1):
    """½‖w‖² + l1‖w‖₁ + C Σ u ℓ(sign ⟨w, x⟩)."""
    return 0.5 * w @ w + l1 * np.abs(w).sum() + C * np.sum(u * LOSSES[loss][0](sign * (X @ w)))
