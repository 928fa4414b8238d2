"""Losses: means and quantiles that they predict, separable rows, and models of other losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from kit.linear_solver import problem

import streamcut
from streamcut import evaluate, train
from streamcut.errors import UsageError

# The solvers


def numbers(name, n=120, d=8, *, seed=0, weights=False):
    """A sparse regression problem that fits the loss: (X, y, u)."""
    rng = np.random.default_rng(seed)
    X, _, u = problem(n, d, seed=seed, weights=weights)
    scores = X @ rng.standard_normal(d) + 0.5
    y = rng.poisson(np.exp(0.5 * scores)).astype(float) if name == "poisson" else scores + 0.3 * rng.standard_normal(n) + 3.0
    return X, y, u


def test_poisson_predicts_means_and_quantiles_lie_where_they_should():
    X, y, _ = numbers("poisson", 2000, 6, seed=2)
    model = train(streamcut.rows(X, y), task="regression", loss="poisson", C=10.0, bias=1.0, tol_relative=1e-4)
    assert model.predict(X) == pytest.approx(np.exp(model.decision_function(X)))
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=1e-2)
    assert evaluate(model, (X, y)).mean_poisson_deviance > 0.0
    X, y, _ = numbers("quantile", 2000, 6, seed=2)
    high = train(streamcut.rows(X, y), task="regression", loss="quantile", quantile=0.9, C=10.0)
    assert np.mean(y <= high.predict(X)) == pytest.approx(0.9, abs=0.02)
    assert evaluate(train(streamcut.rows(X, y), task="regression", C=10.0), (X, y)).r2 > 0.9


def rows(n: int = 400, seed: int = 0):
    """(X, counts, weights): every loss takes counts."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, rng.poisson(np.exp(0.5 * (X @ rng.standard_normal(15)))).astype(float), rng.uniform(0.2, 3.0, n)


def data(n: int = 400, shard_nnz: int = 400) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n], y[:n], weight=u[:n], shard_nnz=shard_nnz)


def test_a_regression_starts_from_a_regression():
    X, y, _ = rows()
    classes = train(streamcut.rows(X, y > 0.0), max_passes=3)
    with pytest.raises(UsageError, match="model of task binary by bundle-dca; it takes a linear one for numbers"):
        train(data(), task="regression", warm_start=classes)
    with pytest.raises(UsageError, match="model of task regression by newton; it takes a linear one for two classes"):
        train(streamcut.rows(X, y > 0.0), warm_start=train(data(), task="regression", max_passes=3))
