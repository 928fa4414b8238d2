"""What tests/solvers/test_penalty.py and tests/inside/solvers/test_penalty.py share."""

import numpy as np
import scipy.sparse as sp


def problem(n=120, d=14, *, seed=0, weights=False):
    """Noisy rows, a few features of which matter; row weights that may be 0."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ (rng.standard_normal(d) * (np.arange(d) < 4)) + 0.5 * rng.standard_normal(n) > 0.1, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weights else None
