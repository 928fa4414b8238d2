"""λ‖w‖₁, without ½‖w‖² and with it: next to exact optima and scikit-learn; few weights, those that matter, and long steps."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
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


def lasso_optimum(X: np.ndarray, y: np.ndarray, C: float, l1: float, free: bool) -> Fraction:
    """The least λ‖w‖₁ + C Σ ½(⟨w, x⟩ + b − y)², over all patterns of signs."""
    A = [[Fraction(v) for v in row] + [Fraction(1)] * free for row in X.tolist()]
    t, price, lam, d = (
        [Fraction(v) for v in y.tolist()],
        Fraction(C),
        [Fraction(l1)] * X.shape[1] + [Fraction(0)] * free,
        X.shape[1],
    )
    best = objective(A, t, price, lam, [Fraction(0)] * len(lam))
    for signs in product((-1, 0, 1), repeat=d):
        signs += (1,) * free
        on = [j for j in range(len(lam)) if signs[j]]
        H = [[price * sum(row[i] * row[j] for row in A) for j in on] for i in on]
        g = [price * sum(row[j] * v for row, v in zip(A, t, strict=True)) - lam[j] * signs[j] for j in on]
        if (found := solved(H, g)) is None:
            continue
        w = [Fraction(0)] * len(lam)
        for j, value in zip(on, found, strict=True):
            w[j] = value
        best = min(best, objective(A, t, price, lam, w))
    return best


def objective(A: list, t: list, C: Fraction, l1: list, w: list) -> Fraction:
    losses = ((sum(a * b for a, b in zip(row, w, strict=True)) - v) ** 2 / 2 for row, v in zip(A, t, strict=True))
    return sum((a * abs(b) for a, b in zip(l1, w, strict=True)), Fraction(0)) + C * sum(losses)


def solved(H: list, g: list) -> list | None:
    """H⁻¹g, None for a singular H."""
    rows = [[*row, v] for row, v in zip(H, g, strict=True)]
    for i in range(len(rows)):
        pivot = next((k for k in range(i, len(rows)) if rows[k][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        rows = [row if k == i else [a - row[i] * b for a, b in zip(row, rows[i], strict=True)] for k, row in enumerate(rows)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize(("solver", "intercept"), HOW)
@pytest.mark.parametrize("seed", range(24))
def test_lasso_is_true_in_exact_arithmetic(seed, solver, intercept):
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((6, 3)) * 10.0 ** rng.uniform(-3, 6, 3)
    if seed % 4 == 0:
        X[:, 1] = 2.0 * X[:, 0]
    y, C = rng.standard_normal(6) * 10.0 ** rng.uniform(-3, 3), float(10.0 ** rng.uniform(-3, 3))
    l1 = float(10.0 ** rng.uniform(-4, 0) * C * np.abs(X.T @ y).max())
    rule = {"tol_relative": (1e-2, 1e-6, 1e-12)[seed % 3], "tol": None, "max_passes": 40}
    free = intercept == "free"
    model = train(streamcut.rows(X, y), task="regression", l1_only=l1, intercept=intercept, solver=solver, C=C, **rule)
    A, t, found = [[Fraction(v) for v in row] for row in X.tolist()], [Fraction(v) for v in y.tolist()], model.certificate
    optimum = lasso_optimum(X, y, C, l1, free)
    assert Fraction(found.lower_bound) <= optimum
    A, w = [[*row, Fraction(1)] for row in A], [*map(Fraction, model.weights.tolist()), Fraction(model.intercept)]
    assert Fraction(found.primal) >= objective(A, t, Fraction(C), [Fraction(l1)] * 3 + [Fraction(0)], w)
    if found.converged:
        assert found.primal - found.lower_bound <= found.tolerance.gap
    assert found.converged or seed % 3 == 2


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
    model = train(streamcut.rows(X, y), task=task, loss=loss, l1_only=0.5, intercept=intercept, tol=None, tol_relative=1e-5)
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
    data = streamcut.rows(*three_classes(200, 2000, seed=4))
    assert not train(data, **options, l1=1e4).weights.any()
    model = train(data, **options, l1=20.0, tol=1e-2, tol_relative=None)
    assert model.converged
    assert 0 < np.count_nonzero(model.weights) < 600
    assert "weights are not 0" in model.in_words()


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_steps_are_long_where_thresholds_leave_few_features(loss):
    """Along a row the dual bends by ‖x‖² only where w has all its features: here it has a few of 1,200."""
    options = {"strategy": "one-vs-rest", "loss": loss, "l1": 5.0, "row_cache": "100%", "tol": 1e-2, "tol_relative": None}
    model = train(streamcut.rows(*three_classes(200, 2000, seed=4)), **options, lanes=1, max_passes=20)
    assert model.converged  # by steps for ‖x‖² it takes more than a hundred passes


def test_a_small_price_of_weights_leaves_the_features_that_matter():
    X, y = three_classes(2000, 40, seed=5)
    weights = train(streamcut.rows(X, y > 0.0), loss="logistic", l1=60.0, tol_relative=1e-4).weights
    assert np.count_nonzero(weights) > 1
    assert set(np.flatnonzero(weights)) <= set(range(4))
