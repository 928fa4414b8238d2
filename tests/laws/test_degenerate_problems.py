"""Problems in which little is left to learn: no entries, equal targets, values at the ends of float64. They end, at the optimum.

Optima are those of one number, the intercept, found by a search of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import streamcut

ROWS, LABELS = 100, np.repeat([1.0, 0.0], [80, 20])
COUNTS = np.random.default_rng(0).poisson(3.0, ROWS).astype(float)
LOSSES = {  # of a score and a target (labels: 1 and −1)
    "logistic": lambda s, y: np.logaddexp(0.0, -y * s),
    "hinge": lambda s, y: np.maximum(0.0, 1.0 - y * s),
    "squared-hinge": lambda s, y: np.maximum(0.0, 1.0 - y * s) ** 2,
    "smoothed-hinge": lambda s, y: np.where(y * s <= 0.0, 0.5 - y * s, 0.5 * np.maximum(0.0, 1.0 - y * s) ** 2),
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
    "huber": lambda s, y: np.where(np.abs(s - y) <= 1.0, 0.5 * (s - y) ** 2, np.abs(s - y) - 0.5),
    "epsilon-insensitive": lambda s, y: np.maximum(0.0, np.abs(s - y) - 0.1),
    "squared-epsilon-insensitive": lambda s, y: np.maximum(0.0, np.abs(s - y) - 0.1) ** 2,
    "quantile": lambda s, y: np.maximum(0.3 * (y - s), 0.7 * (s - y)),
    "poisson": lambda s, y: np.exp(s) - y * s - y + y * np.log(np.where(y > 0.0, y, 1.0)),
}
OPTIONS = {
    "quantile": {"quantile": 0.3},
    "epsilon-insensitive": {"epsilon": 0.1},
    "squared-epsilon-insensitive": {"epsilon": 0.1},
}
LABELLED = list(LOSSES)[:4]
ELASTIC = [loss for loss in LOSSES if loss != "poisson"]
SMOOTH = [loss for loss in LOSSES if loss not in ("hinge", "epsilon-insensitive", "quantile")]


def train(X, y, loss: str, **options):
    task = "binary" if loss in LABELLED else "regression"
    limits = {"max_passes": 60, "max_time": 60.0, "workers": 1}
    return streamcut.train((X, y), loss=loss, task=task, **{**limits, **OPTIONS.get(loss, {}), **options})


def least(loss: str, y: np.ndarray) -> float:
    """Σ ℓ of the best constant score."""
    y = 2.0 * y - 1.0 if loss in LABELLED else y

    def total(score: float) -> float:
        return float(LOSSES[loss](score, y).sum())

    ends = (min(y.min(), -3.0) - 1.0, max(y.max(), 3.0) + 1.0)
    found = minimize_scalar(total, bounds=ends, method="bounded", options={"xatol": 1e-12}).fun
    return min(found, *map(total, np.unique(y)))


def expect_optimal(model, optimum: float) -> None:
    """Converged, and the bounds hold, to rounding of the optimum."""
    c = model.certificate
    rounding = 1e-9 * (optimum + c.primal)
    assert c.converged, c.in_words()
    assert c.lower_bound - rounding <= optimum <= c.primal + rounding
    assert c.primal - c.lower_bound <= c.tolerance.gap


@pytest.mark.parametrize("penalty", [{}, {"l1": 1.0}, {"l1_only": 1.0}], ids=["ridge", "elastic-net", "lasso"])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_intercept_alone_is_the_best_constant(loss, penalty):
    if loss not in (SMOOTH if "l1_only" in penalty else ELASTIC if "l1" in penalty else LOSSES):
        pytest.skip("there is no such problem")
    y = LABELS if loss in LABELLED else COUNTS
    for C in (1.0, 1e-4):
        expect_optimal(train(np.zeros((ROWS, 2)), y, loss, C=C, intercept="free", **penalty), C * least(loss, y))


@pytest.mark.parametrize("solver", ["newton", "bundle-dca", "ocas", "cpa"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "quantile"])
def test_every_solver_finds_an_intercept_alone(loss, solver):
    y = LABELS if loss in LABELLED else COUNTS
    expect_optimal(train(np.zeros((ROWS, 2)), y, loss, solver=solver, intercept="free"), least(loss, y))


@pytest.mark.parametrize("penalty", [{}, {"l1": 1.0}, {"l1_only": 1.0}], ids=["ridge", "elastic-net", "lasso"])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in LABELLED])
def test_equal_targets_are_the_intercept(loss, penalty):
    if loss not in (SMOOTH if "l1_only" in penalty else ELASTIC if "l1" in penalty else LOSSES):
        pytest.skip("there is no such problem")
    X = np.random.default_rng(1).normal(size=(ROWS, 3))
    for target, C in ((3.0, 1.0), (0.1, 1e-3), (1e6 / 3.0, 1.0), (0.0, 1.0)):
        if loss == "poisson" and target > 1e3:
            continue
        model = train(X, np.full(ROWS, target), loss, C=C, intercept="free", **penalty)
        expect_optimal(model, 0.0)
        predicted, off = streamcut.predict(model, X), OPTIONS.get(loss, {}).get("epsilon", 0.0)
        np.testing.assert_allclose(predicted, target, rtol=1e-5, atol=off + 1e-5)


@pytest.mark.parametrize("loss", [*LABELLED, "softmax", "crammer-singer"])
def test_several_classes_without_entries(loss):
    y, X = np.repeat([0.0, 1.0, 2.0], [50, 30, 20]), np.zeros((ROWS, 2))
    joint = {"softmax": {"loss": "softmax"}, "crammer-singer": {}}
    options = joint.get(loss, {"loss": loss, "strategy": "one-vs-rest", "intercept": "free"})
    model = streamcut.train((X, y), task="multiclass", max_passes=60, workers=1, **options)
    assert model.converged
    if loss in joint:
        return
    for label, certificate in zip((0.0, 1.0, 2.0), model.certificates, strict=True):
        optimum = least(loss, (y == label).astype(float))
        assert certificate.lower_bound <= optimum * (1.0 + 1e-9)
        assert optimum <= certificate.primal * (1.0 + 1e-9)
