"""What tests/solvers/test_sampled_cuts.py and tests/inside/solvers/test_sampled_cuts.py share."""

from functools import cache

import numpy as np
import scipy.sparse as sp

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def rings(n=120, seed=0):
    """(X, y): two classes that no line parts."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


def coefficients_of(model, X):
    """The model's coefficients by row of X."""
    rows = {row.tobytes(): i for i, row in enumerate(X)}
    places = [rows[vector.tobytes()] for vector in model.support.toarray()]
    found = np.zeros((len(X), *model.coefficients.shape[1:]))
    found[places] = model.coefficients
    return found


def words(count=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, count)
    y = np.concatenate([(rng.integers(3) + np.arange(n)) % 3 for n in lengths])
    angle = 2 * np.pi * (y + 0.8 * rng.standard_normal(len(y))) / 6
    return sp.csr_array(np.stack([np.cos(2 * angle), np.sin(2 * angle)], 1)), y + 1.0, np.repeat(np.arange(count), lengths)
