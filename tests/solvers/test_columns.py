"""One-vs-rest: what ends it, models that it goes on from, free intercepts, LIBLINEAR's optima, odds of classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

import streamcut
from streamcut import train, verify
from streamcut.errors import UsageError

REST = {"task": "multiclass", "strategy": "one-vs-rest"}


LABELS = (-1.0, 2.0, 5.0, 9.0)


def problem(n=300, d=10, *, seed=0, weights=False):
    """Noisy sparse rows of four classes of unequal size; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, 4)) + 0.5 * rng.standard_normal((n, 4)) + np.array([0.0, 0.5, 1.0, -1.0])
    return X, np.array(LABELS)[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


def test_limits_end_every_class_and_say_so():
    X, y, _ = problem()
    tight = {**REST, "tol": 1e-12, "tol_relative": None}
    for limit, reason in (({"max_passes": 3}, "max_passes"), ({"max_time": 1e-9}, "time")):
        model = train(streamcut.rows(X, y), **tight, **limit)
        assert {c.stop_reason for c in model.certificates} == {reason}
        assert not model.converged
        assert verify(model, streamcut.rows(X, y)).consistent


def test_a_warm_start_with_a_proof_that_does_not_hold_is_refused():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    model = train(data, **REST, tol=1e-5, tol_relative=None)
    witnesses = (*model.witnesses[:2], replace(model.witnesses[2], b=model.witnesses[2].b + 1.0), model.witnesses[3])
    with pytest.raises(UsageError, match="cutting plane does not hold on this data"):
        train(data, **REST, warm_start=replace(model, witnesses=witnesses))


def test_the_model_says_which_class_is_furthest():
    X, y, _ = problem()
    model = train(streamcut.rows(X, y), **REST, max_passes=2, tol=1e-9, tol_relative=None)
    assert model.in_words().startswith("0 of 4 classes converged.")
    assert set(model.result()["classes"]) == {"-1", "2", "5", "9"}


def test_probabilities_are_the_odds_of_the_classes(tmp_path):
    X, y, _ = problem()
    model = train(streamcut.rows(X, y), **REST, loss="logistic")
    streamcut.save_model(model, tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    p = expit(again.decision_function(X))
    np.testing.assert_allclose(again.probabilities_of(again.decision_function(X)), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    assert streamcut.evaluate(model, (X, y)).log_loss < np.log(4)


@pytest.mark.parametrize("task", [{}, {"task": "regression"}, REST], ids=["two classes", "numbers", "classes"])
def test_a_grid_has_them_in_one_set_of_passes(task):
    X, y, _ = problem(240)
    y = {"regression": X @ np.arange(10.0) + 50.0, "multiclass": y}.get(task.get("task"), np.where(y > 2.0, 1.0, -1.0))
    given = {**task, "intercept": "free", "tol": None, "tol_relative": 1e-3}
    tuned = streamcut.tune((X, y), {"C": [0.1, 1.0]}, folds=3, solver="bundle-dca", **given)
    assert tuned.resources["groups"] == 1
    assert tuned.model.problem.free
    assert tuned.model.converged
    assert verify(tuned.model, streamcut.rows(X, y)).consistent


def test_folds_that_leave_one_label_are_named():
    X, y, _ = problem(60)
    y = np.where(np.arange(60) == 7, 1.0, -1.0)
    with pytest.raises(UsageError, match=r"^intercept: without fold \d all rows of positive weight have one label"):
        streamcut.tune((X, y), {"C": [1.0]}, folds=3, intercept="free", measure="accuracy")


def test_two_classes_together_are_the_binary_problem_with_half_the_norm():
    """w_1 = −w_0 = w/2 of the hinge loss with margin 1 between them: F of the binary problem at 2C is twice this one."""
    X, y, _ = problem(100)
    tight = {"tol": 1e-6, "tol_relative": None, "max_passes": 3000}
    ours, binary = (
        train(streamcut.rows(X, y > 2.0), task=task, C=C, **tight) for task, C in (("multiclass", 0.5), ("binary", 1.0))
    )
    assert binary.certificate.lower_bound <= 2 * ours.certificate.primal
    assert 2 * ours.certificate.lower_bound <= binary.certificate.primal
