"""Two classes for losses of whole labellings."""

import numpy as np
import scipy.sparse as sp

LOSSES = [("error", None), ("f1", None), ("prbep", None), ("prec@k", "7"), ("rec@k", "25%")]


def problem(n=60, d=6, *, seed=0, positives=0.3):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    s = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, np.where(s > np.quantile(s, 1.0 - positives), 4.0, -1.0)
