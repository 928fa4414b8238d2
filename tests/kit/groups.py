"""Groups of rows: to be ranked, or labelled as sequences."""

import numpy as np
import scipy.sparse as sp


def problem(n=60, d=6, *, seed=0, queries=None, levels=3, dtype=np.float64):
    """Noisy ordinal labels in queries of unequal size and level."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.data = X.data.astype(dtype)
    qid = None if queries is None else np.sort(rng.integers(0, queries, n))
    s = X @ rng.standard_normal(d) + 0.7 * rng.standard_normal(n)
    y = np.digitize(s, np.quantile(s, np.linspace(0, 1, levels + 1)[1:-1])) * 2.5 - 1.0
    return X, y, qid


def sequences(count=60, *, K=3, d=6, seed=0):
    """(X, y, qid): each label tends to follow the one before it, and shows in the features only sometimes."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, count)
    y = np.concatenate([(rng.integers(K) + np.arange(n)) % K for n in lengths]).astype(float)
    X = sp.random_array((len(y), d), density=0.5, format="csr", rng=rng).toarray()
    X[np.arange(len(y)), y.astype(int)] += rng.random(len(y)) > 0.4
    return sp.csr_array(X), y + 1.0, np.repeat(np.arange(count) + 5, lengths)
