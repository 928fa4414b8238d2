"""What tests/faces/test_options_and_weights.py and tests/inside/faces/test_options_and_weights.py share."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)


def with_hidden(wild=1e4):
    """(rows with some of weight 0 among them, that are far from all others, their targets and weights; which of them count)."""
    counts = np.ones(80, bool)
    counts[::4] = False
    more, y = np.full((80, 3), wild) * np.arange(1, 81)[:, None], np.full(80, -7.25)
    more[counts], y[counts] = X, Y
    return more, y, counts.astype(float), counts
