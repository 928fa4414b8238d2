"""What tests/solvers/test_bundle_dca.py and tests/inside/solvers/test_bundle_dca.py share."""

import numpy as np
import scipy.sparse as sp

# The certificate


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
