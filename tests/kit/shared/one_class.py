"""What tests/solvers/test_one_class.py and tests/inside/solvers/test_one_class.py share."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp


@cache
def rows(n: int = 300) -> sp.csr_array:
    """Rows that mostly lie to one side of the origin."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 8), density=0.6, format="csr", rng=rng, data_sampler=lambda size: rng.gamma(2.0, 0.5, size) - 0.3)
    return sp.csr_array(X)


def mean_of_lowest(scores: np.ndarray, nu: float) -> float:
    """The slow way: sorted, the last one counts in part."""
    k = nu * len(scores)
    parts = np.clip(k - np.arange(len(scores)), 0.0, 1.0)
    return float(np.sort(scores) @ parts / k)
