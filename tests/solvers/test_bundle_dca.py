"""bundle-dca: what it refuses, and runs that go on."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def problem(n, d, *, seed, weights=False, dtype=np.float64):
    """Noisy rows of unequal lengths; some have no features, some stand there twice, some weigh nothing."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=rng.uniform(0.1, 0.8), format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.data = X.data.astype(dtype)
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    twice = rng.integers(0, n, n // 5)
    X, y = sp.vstack([X, X[twice]]).tocsr(), np.append(y, y[twice])
    u = rng.uniform(0.2, 3.0, len(y)) * (rng.random(len(y)) < 0.9) if weights else None
    if weights:
        u[:2] = 1.0
    return X, y, u


def test_too_small_a_bundle_or_cache_is_refused():
    X, y, _ = problem(50, 5, seed=8)
    with pytest.raises(UsageError, match="bundle-dca needs 4 cuts, not 3"):
        train(streamcut.rows(X, y), solver="bundle-dca", max_cuts=3)
    with pytest.raises(UsageError, match="row_cache: 100B is too little"):
        train(streamcut.rows(X, y), solver="bundle-dca", row_cache="100B")
