"""What tests/solvers/test_kernel_baselines.py and tests/inside/solvers/test_kernel_baselines.py share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def problem(seed=2, n=100, noise=0.6):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, 5), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    return X, np.where(X.toarray()[:, 0] + noise * generator.normal(size=n) > 0, 1.0, -1.0)
