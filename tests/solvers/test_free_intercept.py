"""An intercept that costs nothing: far away where rows count little, and beside large columns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn import linear_model, svm

import streamcut
from streamcut import train, verify
from streamcut.errors import BadInputError

OF_NUMBERS = ("squared", "epsilon-insensitive")


@cache
def rows(loss: str, seed: int, n: int = 120, d: int = 6):
    """Rows far from 0, features of different sizes, few positive labels, targets far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(d)) + rng.choice([0.0, 3.0])
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    if loss in OF_NUMBERS:
        return X, score + 50.0
    y = np.where(score > np.quantile(score, rng.choice([0.5, 0.9])), 1.0, -1.0)
    return X, y


def trained(data, loss: str, **given):
    usual = {"intercept": "free", "tol": None, "tol_relative": 1e-7, "max_passes": 300, "workers": 1}
    task = "regression" if loss in OF_NUMBERS else "binary"
    return train(data, loss=loss, task=task, **{**usual, **given})


LOSSES = {  # ℓ(score, target)
    "hinge": lambda s, y: np.maximum(0.0, 1.0 - y * s),
    "squared-hinge": lambda s, y: np.maximum(0.0, 1.0 - y * s) ** 2,
    "logistic": lambda s, y: np.logaddexp(0.0, -y * s),
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
    "epsilon-insensitive": lambda s, y: np.maximum(0.0, np.abs(s - y) - 0.1),
}


def objective(loss: str, w: np.ndarray, b: float, X, y, C: float) -> float:
    return 0.5 * float(w @ w) + C * float(LOSSES[loss](X @ w + b, y).sum())


def exact(loss: str, X, y, C: float) -> float:
    """F of a point that is nearly the optimum."""
    found = {
        "hinge": lambda: svm.SVC(kernel="linear", C=C, tol=1e-9),
        "squared-hinge": lambda: svm.LinearSVC(C=C, tol=1e-12, max_iter=10**6, intercept_scaling=1e4),
        "logistic": lambda: linear_model.LogisticRegression(C=C, solver="newton-cholesky", tol=1e-13, max_iter=1000),
        "squared": lambda: linear_model.Ridge(alpha=1.0 / C, solver="cholesky"),
        "epsilon-insensitive": lambda: svm.SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-9),
    }[loss]()
    found.fit(X, y)
    w, b = np.ravel(found.coef_), float(np.ravel(found.intercept_)[0])
    return objective(loss, w, b, X, y, C)


def test_an_intercept_far_away_is_found_where_rows_count_little():
    """Where C̄ is below 1 a regularised intercept hardly moves; steps of dual ascent must not be as short."""
    for loss in LOSSES:
        X, y = rows(loss, 3, 60)
        model = trained((X, y), loss, solver="bundle-dca", C=1e-3, tol_relative=1e-4)
        assert model.certificate.converged
        assert model.certificate.primal <= exact(loss, X, y, 1e-3) * (1.0 + 1e-4)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_large_columns_leave_the_bound_what_it_is(loss):
    """As large as those of tables are: an intercept in units of 1 would lose it to their rounding."""
    rng = np.random.default_rng(5)
    X = rng.gamma(1.0, 1.0, (400, 6)) * [1.0, 1e6, 2e6, 50.0, 1e3, 1e4]
    y = X @ [1.0, 1e-6, -1e-6, 0.1, 1e-3, 1e-4] + rng.standard_normal(400) + 7.0
    asked = {"task": "regression", "loss": loss, "intercept": "free", "solver": "newton", "tol": None, "tol_relative": 1e-7}
    model = train(streamcut.rows(X, y), **asked, max_passes=40)
    assert model.certificate.gap <= 1e-7 * model.certificate.primal
    assert verify(model, streamcut.rows(X, y)).consistent
    if loss == "squared":
        theirs = linear_model.Ridge(alpha=1.0).fit(X, y)
        np.testing.assert_allclose(model.intercept, theirs.intercept_, rtol=1e-6)


def test_rows_of_one_label_are_refused():
    X, y = rows("hinge", 10)
    with pytest.raises(BadInputError, match="label -1 have weight 0"):
        train(streamcut.rows(X, y, weight=(y > 0).astype(float)), intercept="free")
