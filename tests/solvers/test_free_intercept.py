"""An intercept that costs nothing: scikit-learn's optimum, far away, of large columns and of counts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn import linear_model, svm

import streamcut
from streamcut import train, verify
from streamcut.errors import BadInputError, UsageError
from streamcut.sklearn import LinearSVM, LinearSVR, LogisticRegression

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
CURVED = ("squared-hinge", "logistic", "squared")


def objective(loss: str, w: np.ndarray, b: float, X, y, C: float) -> float:
    return 0.5 * float(w @ w) + C * float(LOSSES[loss](X @ w + b, y).sum())


def exact(loss: str, X, y, C: float) -> tuple[float, np.ndarray]:
    """(F, (w, b)) of a point that is nearly the optimum."""
    found = {
        "hinge": lambda: svm.SVC(kernel="linear", C=C, tol=1e-9),
        "squared-hinge": lambda: svm.LinearSVC(C=C, tol=1e-12, max_iter=10**6, intercept_scaling=1e4),
        "logistic": lambda: linear_model.LogisticRegression(C=C, solver="newton-cholesky", tol=1e-13, max_iter=1000),
        "squared": lambda: linear_model.Ridge(alpha=1.0 / C, solver="cholesky"),
        "epsilon-insensitive": lambda: svm.SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-9),
    }[loss]()
    found.fit(X, y)
    w, b = np.ravel(found.coef_), float(np.ravel(found.intercept_)[0])
    return objective(loss, w, b, X, y, C), np.append(w, b)


@pytest.mark.parametrize("solver", ["bundle-dca", "newton", "ocas"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_scikit_learn(loss, solver):
    if solver == "newton" and loss not in CURVED:
        pytest.skip("newton trains losses with a curvature")
    for seed, C in ((1, 0.01), (2, 30.0)):
        X, y = rows(loss, seed)
        F, point = exact(loss, X, y, C)
        model = trained((X, y), loss, solver=solver, C=C, max_passes=1000)
        certificate = model.certificate
        assert certificate.converged, certificate
        own = objective(loss, model.weights, model.intercept, X, y, C)
        assert own <= certificate.primal * (1.0 + 1e-12)
        assert certificate.lower_bound <= min(F, own)
        assert certificate.primal <= F * (1.0 + 1e-6)
        assert np.linalg.norm(model.weights - point[:-1]) <= np.sqrt(2.0 * certificate.gap) + np.sqrt(
            2.0 * (F - certificate.lower_bound)
        )


def test_an_intercept_far_away_is_found_where_rows_count_little():
    """Where C̄ is below 1 a regularised intercept hardly moves; steps of dual ascent must not be as short."""
    for loss in LOSSES:
        X, y = rows(loss, 3, 60)
        model = trained((X, y), loss, solver="bundle-dca", C=1e-3, tol_relative=1e-4)
        assert model.certificate.converged
        assert model.certificate.primal <= exact(loss, X, y, 1e-3)[0] * (1.0 + 1e-4)


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


def test_an_elastic_net_of_numbers_is_that_of_scikit_learn():
    """Theirs has F/(n C) as its objective, with half the square of residuals."""
    X, y = rows("squared", 12, 200, 20)
    C, l1 = 0.5, 40.0
    theirs = linear_model.ElasticNet(alpha=(l1 + 1.0) / (len(y) * C), l1_ratio=l1 / (l1 + 1.0), tol=1e-12, max_iter=10**6)
    theirs.fit(X, y)
    model = trained((X, y), "squared", C=C, l1=l1, tol_relative=1e-12, max_passes=1000)
    certificate = model.certificate
    assert certificate.gap <= 1e-4 * certificate.primal
    assert np.linalg.norm(model.weights - theirs.coef_) <= np.sqrt(2.0 * certificate.gap) + 1e-5
    assert model.intercept == pytest.approx(theirs.intercept_, rel=1e-3)
    assert 0 < np.count_nonzero(model.weights) < 20


def test_estimators_speak_scikit_learns_language():
    X, y = rows("logistic", 7)
    theirs = linear_model.LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(X, y)
    ours = LogisticRegression(C=2.0, intercept="free", tol=0, tol_relative=1e-10).fit(X, y)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-3)
    X, t = rows("squared", 7)
    ours = LinearSVR(loss="squared", C=1.0, intercept="free", tol=0, tol_relative=1e-10).fit(X, t)
    assert ours.intercept_ == pytest.approx(linear_model.Ridge(alpha=1.0).fit(X, t).intercept_, rel=1e-4)
    with pytest.raises(UsageError, match=r"^intercept:"):
        LinearSVM(intercept="free").fit(X, np.arange(len(t)) % 3)


def test_rows_of_one_label_are_refused():
    X, y = rows("hinge", 10)
    with pytest.raises(BadInputError, match="label -1 have weight 0"):
        train(streamcut.rows(X, y, weight=(y > 0).astype(float)), intercept="free")


@pytest.mark.parametrize("largest", [6, 10_000])
def test_counts_and_their_intercept_next_to_scikit_learn(largest):
    """Poisson: equal scores at which rows of counts pull both ways bound the intercept."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y = rng.poisson(np.exp(np.clip(X @ rng.normal(size=5) - 1.0, -5.0, np.log(largest)))).astype(float)
    model = train(
        streamcut.rows(X, y), task="regression", loss="poisson", intercept="free", tol=None, tol_relative=1e-8, max_passes=60
    )
    assert model.certificate.converged
    peer = linear_model.PoissonRegressor(alpha=1.0 / len(y), solver="newton-cholesky", tol=1e-12, max_iter=300).fit(X, y)
    np.testing.assert_allclose(np.append(model.weights, model.intercept), np.append(peer.coef_, peer.intercept_), atol=2e-4)
