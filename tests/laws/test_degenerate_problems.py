"""Problems in which little is left to learn: no entries, equal targets, values at the ends of float64. They end, at the optimum.

Optima are those of one number, the intercept, found by a search of their own.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from laws.problems import ROW_LOSSES as LOSSES
from laws.problems import Rows, objective
from scipy.optimize import minimize_scalar
from sklearn.svm import SVC

import streamcut

ROWS, LABELS = 100, np.repeat([1.0, 0.0], [80, 20])
COUNTS = np.random.default_rng(0).poisson(3.0, ROWS).astype(float)
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
    return streamcut.train((X, y, np.ones(len(y))), loss=loss, task=task, **{**limits, **OPTIONS.get(loss, {}), **options})


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


WITH_FREE = {"ridge": ("auto", "bundle-dca", "newton", "ocas", "cpa"), "l1": ("auto", "bundle-dca", "newton")}
WITH_FREE["l1_only"] = "auto", "working-set"


@pytest.mark.parametrize("penalty", WITH_FREE)
@pytest.mark.parametrize("loss", LOSSES)
def test_an_intercept_alone_is_the_best_constant(loss, penalty):
    """By every solver that has a free intercept."""
    if loss not in {"l1": ELASTIC, "l1_only": SMOOTH}.get(penalty, LOSSES):
        pytest.skip("there is no such problem")
    y, by = LABELS if loss in LABELLED else COUNTS, {} if penalty == "ridge" else {penalty: 1.0}
    for C, solver in product((1.0, 1e-4), WITH_FREE[penalty]):
        expect_optimal(train(np.zeros((ROWS, 2)), y, loss, C=C, intercept="free", solver=solver, **by), C * least(loss, y))


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
    model = streamcut.train((X, y, np.ones(ROWS)), task="multiclass", max_passes=60, workers=1, **options)
    assert model.converged
    if loss in joint:
        return
    for label, certificate in zip((0.0, 1.0, 2.0), model.certificates, strict=True):
        optimum = least(loss, (y == label).astype(float))
        assert certificate.lower_bound <= optimum * (1.0 + 1e-9)
        assert optimum <= certificate.primal * (1.0 + 1e-9)


def test_one_query_with_pairs_among_others_is_all_that_counts():
    qid, y = np.repeat(np.arange(25), 4), np.where(np.arange(ROWS) < 96, 1.0, [0.0, 1.0, 1.0, 2.0] * 25)
    data = Rows(sp.csr_array(np.random.default_rng(1).normal(size=(ROWS, 3))), y, qid)
    for C, normalisation in product((1e-2, 10.0), ("pairs", "queries")):
        options = {"task": "ranking", "normalisation": normalisation, "C": C, "tol_relative": 1e-6, "tol": None}
        model = streamcut.train(data.in_memory(), **options)
        assert model.certificate.primal == pytest.approx(objective(model, data, options), rel=1e-9)
        assert model.converged


def separable() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(2).normal(size=(ROWS, 4))
    X[:, 0] += 0.3 * np.sign(X[:, 0])
    return X, X[:, 0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("options", [{}, {"intercept": "free"}, {"solver": "ocas"}], ids=["auto", "free", "ocas"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "quantile"])
def test_converged_means_what_was_asked_for_any_c(loss, options):
    """On rows that can be fitted without loss: rounding in C·loss then exceeds all of ½‖w‖²."""
    X, score = separable()
    y = (score > 0.0).astype(float) if loss in LABELLED else X @ np.array([1.0, 2.0, 0.0, 0.0])
    for C in (1e-100, 1e-30, 1e10, 1e12, 1e40, 1e99):
        model = train(X, y, loss, C=C, max_passes=200, **options)
        c = model.certificate
        assert np.isfinite([c.primal, c.lower_bound, *model.weights, model.intercept]).all()
        if c.converged:
            asked = min(c.tol * c.c_bar * c.unit, c.tol_relative * c.primal)
            assert c.primal - c.lower_bound <= asked, (C, c.in_words())


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_class_claims_nothing_at_tiny_nu():
    X = np.random.default_rng(3).normal(size=(ROWS, 3)) + 1.0
    for nu in (0.1, 1e-3, 1e-6, 1e-12, 1e-100):
        c = streamcut.train((X, np.ones(ROWS)), task="one-class", nu=nu, max_passes=60).certificate
        assert np.isfinite([c.primal, c.lower_bound]).all()
        assert not c.converged or c.primal - c.lower_bound <= min(c.tol * c.c_bar * c.unit, (c.tol_relative or 1.0) * c.primal)


def test_a_training_that_cannot_move_ends():
    X, _ = separable()
    model = train(X, X @ np.array([1.0, 2.0, 0.0, 0.0]), "squared", C=1e10, max_passes=500)
    assert len(model.history) < 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 1e100),
        ("C", 1e-300),
        ("l1", 1e-300),
        ("l1_only", 1e-300),
        ("l1", 1e300),
        ("bias", 1e155),
        ("bias", 1.7e308),
        ("nu", 1e-300),
    ],
)
def test_what_float64_cannot_hold_is_refused_by_name(name, value):
    X, score = separable()
    options = {"task": "one-class"} if name == "nu" else {"loss": "logistic"}
    with pytest.raises(streamcut.errors.UsageError, match=rf"^{name}: "):
        streamcut.train((X, (score > 0.0).astype(float)), **options, **{name: value})


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("bias", [1e8, 1e50, 1e140])
def test_a_huge_bias_ends_without_nonsense(bias):
    X, score = separable()
    for loss in ("hinge", "logistic"):
        model = train(X, (score > 0.2).astype(float), loss, bias=bias)
        assert np.isfinite([model.certificate.primal, model.certificate.lower_bound, model.intercept, *model.weights]).all()


@pytest.mark.parametrize(
    "options", [{}, {"l1": 1.0}, {"l1_only": 1.0}, {"intercept": "free"}, {"intercept": "free", "l1_only": 1.0}], ids=str
)
def test_values_near_the_largest_float_are_refused_in_words(options):
    X = np.finfo(float).max * np.random.default_rng(4).uniform(size=(10, 2))
    with pytest.raises(streamcut.errors.BadInputError, match="overflow"):
        train(X, np.arange(10.0) % 2, "squared", **options)


@pytest.mark.parametrize("solver", ["bundle-dca", "newton", "ocas"])
def test_an_intercept_is_in_the_middle_of_its_optima(solver):
    """With a small C all dual variables are at their bounds, and the best intercept is any number of an interval."""
    r = np.random.default_rng(5)
    X, y = np.concatenate([r.normal((2, 2), 1.0, (60, 2)), r.normal((5, 0), 1.0, (60, 2))]), np.repeat([0.0, 1.0], 60)
    for C in (1e-5, 1e-4):
        model, reference = train(X, y, "hinge", C=C, intercept="free", solver=solver), SVC(C=C, kernel="linear").fit(X, y)
        assert model.converged
        np.testing.assert_allclose(model.intercept, reference.intercept_[0], atol=2e-3)
        assert np.mean(streamcut.predict(model, X) == y) > 0.9


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge", "huber"])
def test_an_elastic_net_with_a_free_intercept_takes_few_passes(loss):
    """The optimum is that of an intercept that costs almost nothing."""
    r = np.random.default_rng(1)
    X = r.normal(r.integers(-2, 3, 10), size=(2000, 10))
    score = X @ np.array([1.0, 0.5, 0.1, -0.1, -0.5, -1.0, 0.0, 0.0, 0.0, 0.0]) + r.normal(size=2000) + 0.7
    y = (score > 0.0).astype(float) if loss in LABELLED else score
    tight = {"C": 1e-3, "l1": 1.0, "tol": 1e-9, "tol_relative": 1e-9}
    model, other = train(X, y, loss, intercept="free", **tight), train(X, y, loss, bias=1e6, **tight)
    assert model.solver == "newton"
    assert model.converged
    assert len(model.history) <= 20
    np.testing.assert_allclose(model.certificate.primal, other.certificate.primal, rtol=1e-4)
    np.testing.assert_array_equal(model.weights == 0.0, other.weights == 0.0)


@pytest.mark.parametrize("solver", ["newton", "bundle-dca"])
def test_an_elastic_net_of_quantiles_with_a_free_intercept(solver):
    r = np.random.default_rng(1)
    X = r.normal(size=(600, 5))
    y = X @ np.array([1.0, 0.5, 0.0, 0.0, -1.0]) + r.normal(size=600) + 3.0
    model = train(X, y, "quantile", C=0.1, l1=1.0, intercept="free", solver=solver, tol_relative=1e-3, max_passes=200)
    assert model.converged
    assert 0.2 < np.mean(y < streamcut.predict(model, X)) < 0.4


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "squared", "epsilon-insensitive"])
def test_no_solver_has_a_bound_above_what_another_reaches_with_a_free_intercept(loss):
    """Of rows far from 0, of which few are positive, or whose targets are far away."""
    for seed, C in ((1, 0.01), (2, 30.0)):
        r = np.random.default_rng(seed)
        X = r.normal(3.0, 1.0, (120, 4)) * np.exp(r.normal(size=4))
        score = X @ r.normal(size=4) + 0.5 * r.normal(size=120)
        y = (score > np.quantile(score, 0.9)).astype(float) if loss in LABELLED else score + 50.0
        tight = {"C": C, "intercept": "free", "tol": None, "tol_relative": 1e-6, "max_passes": 1000}
        models = [
            train(X, y, loss, solver=solver, **tight) for solver in ("bundle-dca", "newton", "ocas")[:: 1 + (loss not in SMOOTH)]
        ]
        of = [
            (m.weights @ m.weights / 2, LOSSES[loss](X @ m.weights + m.intercept, 2 * y - 1 if loss in LABELLED else y))
            for m in models
        ]
        least = min(ridge + C * losses.sum() for ridge, losses in of)
        assert all(model.converged for model in models)
        assert max(step["lower_bound"] for model in models for step in model.history) <= least * (1 + 1e-12)
        assert max(model.certificate.primal for model in models) <= least * (1 + 2e-6)
