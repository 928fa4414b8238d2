"""Every loss of the table against its definition; every linear solver with each: the bound is a bound, the primal is exact."""

from __future__ import annotations

import numpy as np
import pytest
from kit.linear_solver import problem

import streamcut
from streamcut import evaluate, train

# The solvers


def numbers(name, n=120, d=8, *, seed=0, weights=False):
    """A sparse regression problem that fits the loss: (X, y, u)."""
    rng = np.random.default_rng(seed)
    X, _, u = problem(n, d, seed=seed, weights=weights)
    scores = X @ rng.standard_normal(d) + 0.5
    y = rng.poisson(np.exp(0.5 * scores)).astype(float) if name == "poisson" else scores + 0.3 * rng.standard_normal(n) + 3.0
    return X, y, u


@pytest.mark.parametrize("name", ["squared-hinge", "logistic"])
def test_separable_data_with_a_large_weight_of_losses_converge(name):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 8))
    y = np.where(X @ rng.standard_normal(8) > 0.0, 1.0, -1.0)
    model = train(streamcut.rows(X, y), loss=name, C=1e4, max_passes=200, scheduler="sync")
    assert model.converged


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
