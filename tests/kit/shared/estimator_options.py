"""What tests/faces/test_estimator_options.py and tests/inside/faces/test_estimator_options.py share."""

from __future__ import annotations

import numpy as np


def rows(n: int = 200, d: int = 6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ np.arange(d) > 0).astype(int)
