"""Stores whose lanes hold several batches."""

import numpy as np
import scipy.sparse as sp


def rows(n=1500, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.35, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
