"""Sequences of made rows."""

import numpy as np
import scipy.sparse as sp


def sequences(count=60, *, K=3, d=6, seed=0):
    """(X, y, qid): each label tends to follow the one before it, and shows in the features only sometimes."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, count)
    y = np.concatenate([(rng.integers(K) + np.arange(n)) % K for n in lengths]).astype(float)
    X = sp.random_array((len(y), d), density=0.5, format="csr", rng=rng).toarray()
    X[np.arange(len(y)), y.astype(int)] += rng.random(len(y)) > 0.4
    return sp.csr_array(X), y + 1.0, np.repeat(np.arange(count) + 5, lengths)
