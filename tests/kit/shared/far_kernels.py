"""What tests/solvers/test_far_kernels.py and tests/inside/solvers/test_far_kernels.py share."""

from __future__ import annotations

import numpy as np

RBF = {"kernel": "rbf", "gamma": 0.02}


def rows(offset, n=30, classes=2):
    """Whole numbers, so that the offset is subtracted and added without any rounding."""
    rng = np.random.default_rng(1)
    X = rng.integers(-8, 9, (n, 2)).astype(float)
    z = np.sin(X[:, 0] / 3.0) + 0.1 * X[:, 1] + 0.3 * rng.standard_normal(n)
    y = np.where(z > 0.0, 1.0, -1.0) if classes == 2 else np.digitize(z, [-0.5, 0.5]).astype(float)
    return X + offset, y
