"""What tests/solvers/test_kernel_solvers.py and tests/inside/solvers/test_papers.py share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def problem(seed=1, n=120, d=6, noise=0.5):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    signs = np.where(X.toarray()[:, 0] * 2 + noise * generator.normal(size=n) > 0, 1.0, -1.0)
    return X, signs
