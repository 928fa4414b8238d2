"""A number is a number: int, float and NumPy's scalars give the same bits in every option."""

import numpy as np
import pytest

import streamcut
from streamcut.sklearn import KernelSVM, LinearSVM, StreamcutRanker

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 5))
GRADES = RNG.integers(0, 3, 120).astype(float)
SIGNS = np.where(X[:, 0] + RNG.standard_normal(120) > 0.0, 1.0, -1.0)
TARGETS = X @ np.arange(5.0) + RNG.standard_normal(120)
KINDS = [int, np.int64, np.float32, np.float64, np.array]
LIMIT = {"max_passes": 40}

TRAININGS = {
    "hinge": (SIGNS, {}),
    "hinge by ocas": (SIGNS, {"solver": "ocas"}),
    "roc-area": (SIGNS, {"task": "roc-area"}),
    "f1": (SIGNS, {"loss": "f1"}),
    "error": (SIGNS, {"loss": "error"}),
    "precision at k": (SIGNS, {"loss": "prec@k", "k": "10%"}),
    "squared": (TARGETS, {"task": "regression"}),
    "joint classes": (GRADES, {"task": "multiclass"}),
    "one-vs-rest": (GRADES, {"task": "multiclass", "strategy": "one-vs-rest"}),
}


def certificates(model):
    return model.certificates


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRAININGS)
def test_cost(name, kind):
    y, options = TRAININGS[name]
    plain, other = (streamcut.train((X, y), C=C, **LIMIT, **options) for C in (2.0, kind(2)))
    np.testing.assert_array_equal(plain.weights, other.weights)
    assert certificates(plain) == certificates(other)
    assert other.parameters == plain.parameters  # and so do records of it


@pytest.mark.parametrize("kind", KINDS)
def test_cost_of_rankings(kind):
    queries = np.repeat(np.arange(24), 5)
    plain, other = (StreamcutRanker(C=C, max_time=60).fit(X, GRADES, groups=queries) for C in (1.0, kind(1)))
    assert other.model_.converged
    np.testing.assert_array_equal(plain.coef_, other.coef_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("option", "value", "more"),
    [
        ("l1", 3.0, {"loss": "logistic"}),
        ("l1_only", 3.0, {"loss": "logistic"}),
        ("bias", 2.0, {}),
        ("positive_weight", 2.0, {"loss": "squared-hinge"}),
        ("epsilon", 1.0, {"task": "regression", "loss": "epsilon-insensitive"}),
        ("delta", 2.0, {"task": "regression", "loss": "huber"}),
        ("tol", 1.0, {}),
        ("max_cuts", 8.0, {"solver": "ocas"}),
        ("max_passes", 3.0, {}),
        ("gamma", 1.0, {"kernel": "rbf", "solver": "smo"}),
    ],
)
def test_other_options(option, value, more, kind):
    y = TARGETS if more.get("task") == "regression" else SIGNS
    plain, other = (streamcut.train((X, y), **{option: given}, **more) for given in (value, kind(value)))
    assert plain.certificate == other.certificate
    assert other.parameters == plain.parameters


@pytest.mark.parametrize("kind", KINDS)
def test_grids_and_class_weights(kind):
    plain, other = (
        streamcut.tune((X, SIGNS), {"C": [each(1), each(4)], "l1": [each(1), each(2)]}, folds=3, **LIMIT)
        for each in (float, kind)
    )
    assert (plain.best.options, plain.best.values) == (other.best.options, other.best.values)
    np.testing.assert_array_equal(plain.model.weights, other.model.weights)
    for make in (LinearSVM, KernelSVM):
        plain, other = (make(class_weight={-1.0: each(2), 1.0: each(3)}).fit(X, SIGNS) for each in (float, kind))
        np.testing.assert_array_equal(plain.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("rows", [12, 12.0, np.int64(12), np.float32(12)])
def test_a_number_of_rows(rows):
    plain, other = (streamcut.train((X, SIGNS), loss="prec@k", k=k, **LIMIT) for k in ("12", rows))
    assert other.parameters == plain.parameters
    np.testing.assert_array_equal(plain.weights, other.weights)
    with pytest.raises(streamcut.errors.UsageError, match=r"^k: 0 is 0 of 120 rows"):
        streamcut.train((X, SIGNS), loss="prec@k", k=0 * rows)


@pytest.mark.parametrize("option", ["C", "l1", "bias", "positive_weight", "sweeps", "seed", "memory"])
def test_none_is_refused_by_name_where_an_option_has_no_such_state(option):
    with pytest.raises(streamcut.errors.UsageError, match=rf"^{option}: None is not? "):
        streamcut.train((X, SIGNS), **{option: None})


@pytest.mark.parametrize("value", [True, "2", 0, -1, float("nan"), float("inf"), 10**400, np.array([1.0]), 1e200])
def test_what_is_no_cost_is_refused_by_name(value):
    with pytest.raises(streamcut.errors.UsageError, match=r"^C: "):
        streamcut.train((X, SIGNS), C=value)
