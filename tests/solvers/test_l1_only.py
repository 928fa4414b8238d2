"""λ‖w‖₁, without ½‖w‖² and with it: next to exact optima and scikit-learn; few weights, those that matter, and long steps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from flint import fmpq, fmpq_mat
from sklearn.linear_model import Lasso

import streamcut
from streamcut import train

HOW = [("newton", "none"), ("working-set", "none"), ("working-set", "free")]


def rows(loss: str, n: int = 200, d: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X[:, :3] @ np.array([1.0, -0.7, 0.4]) + 0.4 * rng.standard_normal(n)
    return X, np.where(score > 0.0, 1.0, -1.0) if loss == "logistic" else score


def text(n: int = 400, d: int = 3000, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Rows with few of many features, of which twenty matter."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.01, format="csr", rng=rng, data_sampler=lambda size: rng.standard_normal(size))
    X[:, 40:] *= 0.7
    score = 3.0 * (X[:, :20] @ np.linspace(2.0, 0.5, 20)) + 0.3 * rng.standard_normal(n)
    return X, score


def exactly(value: float) -> fmpq:
    return fmpq(*value.as_integer_ratio())


def objective(A: list, t: list, C: fmpq, l1: list, w: list) -> fmpq:
    losses = ((sum(a * b for a, b in zip(row, w, strict=True)) - v) ** 2 / 2 for row, v in zip(A, t, strict=True))
    return sum((a * abs(b) for a, b in zip(l1, w, strict=True)), fmpq(0)) + C * sum(losses)


def lasso_optimum(A: list, t: list, C: fmpq, l1: list) -> fmpq:
    """The least Σ l1ⱼ|wⱼ| + C Σ ½(⟨w, x⟩ − y)², over all patterns of signs; what costs nothing has one sign."""
    rows, best = fmpq_mat(A), objective(A, t, C, l1, [fmpq(0)] * len(l1))
    H, g = C * (rows.transpose() * rows), C * (rows.transpose() * fmpq_mat([[v] for v in t]))
    for signs in product(*((-1, 0, 1) if price else (1,) for price in l1)):
        on, w = [j for j, sign in enumerate(signs) if sign], [fmpq(0)] * len(l1)
        part = fmpq_mat([[H[i, j] for j in on] for i in on]) if on else None
        if part is not None and part.det():
            solved = part.solve(fmpq_mat([[g[j, 0] - l1[j] * signs[j]] for j in on]))
            for k, j in enumerate(on):
                w[j] = solved[k, 0]
            best = min(best, objective(A, t, C, l1, w))
    return best


@pytest.mark.parametrize(("solver", "intercept"), HOW)
@pytest.mark.parametrize("seed", range(12))
def test_lasso_is_true_in_exact_arithmetic(seed, solver, intercept):
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((6, 3)) * 10.0 ** rng.uniform(-3, 6, 3)
    if seed % 4 == 0:
        X[:, 1] = 2.0 * X[:, 0]
    y, C = rng.standard_normal(6) * 10.0 ** rng.uniform(-3, 3), float(10.0 ** rng.uniform(-3, 3))
    l1 = float(10.0 ** rng.uniform(-4, 0) * C * np.abs(X.T @ y).max())
    rule = {"tol_relative": (1e-2, 1e-6, 1e-12)[seed % 3], "tol": None, "max_passes": 40}
    model = train(streamcut.rows(X, y), task="regression", l1_only=l1, intercept=intercept, solver=solver, C=C, **rule)
    certificate, free = model.certificate, [fmpq(1)] * (intercept == "free")
    A, t = [[*map(exactly, row), *free] for row in X.tolist()], [*map(exactly, y.tolist())]
    lam = [exactly(l1)] * 3 + [fmpq(0)] * len(free)
    assert exactly(certificate.lower_bound) <= lasso_optimum(A, t, exactly(C), lam)
    w = [*map(exactly, model.weights.tolist()), *([exactly(float(model.intercept))] * len(free))]
    assert exactly(certificate.primal) >= objective(A, t, exactly(C), lam, w)
    if certificate.converged:
        assert certificate.primal - certificate.lower_bound <= certificate.tolerance.gap
    assert certificate.converged or seed % 3 == 2


def test_beyond_the_largest_all_weights_are_0():
    X, y = rows("logistic")
    model = train(streamcut.rows(X, y), loss="logistic", l1_only="100%", intercept="none")
    assert not model.weights.any()
    assert model.history[-1]["passes"] <= 3
    assert train(streamcut.rows(X, y), loss="logistic", l1_only="90%", intercept="none").weights.any()


def test_a_model_with_another_penalty_starts_it_and_proves_nothing():
    data = streamcut.rows(*rows("squared"))
    asked = {"task": "regression", "l1_only": "20%", "tol": None, "tol_relative": 1e-10, "max_passes": 60}
    model, cold = train(data, warm_start=train(data, task="regression", C=0.01), **asked), train(data, **asked)
    assert model.certificate.lower_bound <= cold.certificate.primal
    assert model.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_many_features_take_three_passes(loss, intercept):
    X, y = text()
    y = y + 2.0 if loss == "squared" else np.where(y > 0.7, 1.0, -1.0)
    task = "regression" if loss == "squared" else "binary"
    data = streamcut.rows(X, y, weight=np.ones(len(y)))
    model = train(data, task=task, loss=loss, l1_only=0.5, intercept=intercept, tol=None, tol_relative=1e-5)
    assert model.solver == "working-set"
    assert model.converged
    assert model.history[-1]["passes"] <= 3
    assert 0 < np.count_nonzero(model.weights) < 400
    assert (model.intercept != 0.0) == (intercept == "free")
    if loss == "squared":
        asked = {"fit_intercept": intercept == "free", "tol": 1e-12, "max_iter": 100_000}
        theirs = Lasso(alpha=0.5 / len(y), **asked).fit(X, y)
        np.testing.assert_allclose(model.weights, theirs.coef_, atol=1e-2)
        residual = X @ theirs.coef_ + theirs.intercept_ - y
        F = 0.5 * np.abs(theirs.coef_).sum() + 0.5 * residual @ residual
        assert model.certificate.lower_bound <= F * (1.0 + 1e-12)
        assert model.certificate.primal == pytest.approx(F, rel=1e-5)


def three_classes(n, d, seed):
    """Noisy rows, which four of the features tell apart."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = 2.0 * (X @ (rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None])) + rng.gumbel(size=(n, 3))
    return X, np.array([-1.0, 2.0, 5.0])[scores.argmax(axis=1)]


@pytest.mark.parametrize("options", [{"loss": "softmax"}, {}, {"strategy": "one-vs-rest"}], ids=str)
def test_the_elastic_net_of_classes_leaves_few_weights_or_none(options):
    data = streamcut.rows(*three_classes(200, 2000, seed=4), weight=np.ones(200))
    assert not train(data, **options, l1=1e4).weights.any()
    model = train(data, **options, l1=20.0, tol=1e-2, tol_relative=None)
    assert model.converged
    assert 0 < np.count_nonzero(model.weights) < 600
    assert "weights are not 0" in model.in_words()


def test_steps_are_long_where_thresholds_leave_few_features():
    """Along a row the dual bends by ‖x‖² only where w has all its features: here it has a few of 1,200."""
    options = {"strategy": "one-vs-rest", "loss": "hinge", "l1": 5.0, "row_cache": "100%", "tol": 1e-2, "tol_relative": None}
    data = streamcut.rows(*three_classes(200, 2000, seed=4), weight=np.ones(200))
    model = train(data, **options, lanes=1, max_passes=20)
    assert model.converged  # by steps for ‖x‖² it takes more than a hundred passes


def test_a_small_price_of_weights_leaves_the_features_that_matter():
    X, y = three_classes(2000, 40, seed=5)
    weights = train(streamcut.rows(X, y > 0.0), loss="logistic", l1=60.0, tol_relative=1e-4).weights
    assert np.count_nonzero(weights) > 1
    assert set(np.flatnonzero(weights)) <= set(range(4))
