"""Rows of several classes."""

import numpy as np
import scipy.sparse as sp

LABELS = (-2.0, 1.0, 3.5, 7.0)


def problem(n=150, d=8, *, seed=0, weights=False, classes=4):
    """Noisy sparse rows of several classes; some have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, classes)) + 0.5 * rng.standard_normal((n, classes))
    return X, np.asarray(LABELS[:classes])[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


def dense(X, bias=1.0):
    X = X.toarray()
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X
