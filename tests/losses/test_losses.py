"""Every loss of the table against its definition; every linear solver with each: the bound is a bound, the primal is exact."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.losses import numbers

import streamcut
from streamcut import evaluate, train


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
