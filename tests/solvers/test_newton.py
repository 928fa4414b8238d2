"""Newton's method: optima of other programs, few passes, columns of different sizes, large counts."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.newton import KINKED, problem, targets
from sklearn.linear_model import Ridge

import streamcut
from streamcut import train


@pytest.mark.parametrize("loss", KINKED)
def test_kinks_need_no_cache_where_features_are_badly_scaled(loss):
    X, score, _ = problem(2000, 12, density=1.0)
    given, y = targets(loss, score)
    options = {"C": 1.0, "max_passes": 40, **given}
    model = train((X * np.geomspace(1e-2, 1e2, 12), y), solver="newton", **options)
    assert model.certificate.converged
    plain = train((X * np.geomspace(1e-2, 1e2, 12), y), solver="bundle-dca", row_cache="0", **options)
    assert not plain.certificate.converged
    assert plain.certificate.lower_bound <= model.certificate.primal


def test_a_quadratic_loss_takes_one_pass_and_one_to_prove():
    X, score, _ = problem(density=1.0)
    model = train((X, score), task="regression", loss="squared", C=2.0, bias=0.0)
    assert model.solver == "newton"
    assert model.history[-1]["passes"] == 2
    np.testing.assert_allclose(model.weights, Ridge(alpha=0.5, fit_intercept=False).fit(X.toarray(), score).coef_, rtol=1e-9)


@pytest.mark.parametrize("intercept", ["free", "regularised"])
@pytest.mark.parametrize("size", [1e9, 30.0])
def test_large_counts_train(size, intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 4))
    y = np.abs(size * (X @ rng.normal(size=4) + rng.normal(size=500)))
    options = {"task": "regression", "loss": "poisson", "intercept": intercept, "max_passes": 60, "tol_relative": 1e-3}
    model = train(streamcut.rows(X, y), **options)
    assert model.certificate.converged
    assert model.solver == "newton"
