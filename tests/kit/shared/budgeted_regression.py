"""Numbers on a budget: rows for public tests and those of the insides."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

GAMMA, NEVER = 0.4, (1 << 61, 1 << 62)


def _rows(n=60, d=5, seed=0, weighted=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    y = 7.0 + np.sin(X.sum(axis=1)) + 0.3 * random.normal(size=n)
    return sp.csr_array(X), y, random.uniform(0.5, 2.0, n) if weighted else None
