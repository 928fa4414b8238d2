"""One-vs-rest: what ends it, models that it goes on from, free intercepts, LIBLINEAR's optima, odds of classes."""

from __future__ import annotations

import lzma
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.columns import LABELS, REST, overlap, problem
from reference import svm
from scipy.special import expit
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import streamcut
from streamcut import train, verify
from streamcut.errors import UsageError
from streamcut.sklearn import LinearSVM


def values(loss, margins):
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    return np.maximum(0.0, 1.0 - margins) ** (1 if loss == "hinge" else 2)


def test_limits_end_every_class_and_say_so():
    X, y, _ = problem()
    tight = {**REST, "tol": 1e-12, "tol_relative": None}
    for limit, reason in (({"max_passes": 3}, "max_passes"), ({"max_time": 1e-9}, "time")):
        model = train(streamcut.rows(X, y), **tight, **limit)
        assert {c.stop_reason for c in model.certificates} == {reason}
        assert not model.converged
        assert verify(model, streamcut.rows(X, y)).consistent


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_warm_start_begins_with_the_weights_and_their_proof(loss):
    X, y, u = problem(weights=True)
    data, options = streamcut.rows(X, y, weight=u), {**REST, "loss": loss, "tol_relative": None}
    model = train(data, **options, tol=1e-5)
    again = train(data, **options, tol=1e-4, warm_start=model)
    assert again.converged
    assert again.history[-1]["passes"] == 1
    for C, l1 in ((3.0, 0.0), (1.0, 0.5)):
        other = train(data, **options, tol=1e-3, C=C, l1=l1, warm_start=model)
        assert verify(other, data).consistent
        overlap(other, train(data, **options, tol=1e-5, C=C, l1=l1))


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
    found = streamcut.evaluate(model, (X, y))
    signs = np.where(y[:, None] == np.array(model.labels), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(np.maximum(0, 1 - signs * model.decision_function(X)).sum() / len(y))


@pytest.mark.parametrize(("name", "classes"), [("dna", None), ("news20_bydate", (1.0, 7.0))])
def test_no_bound_is_above_what_liblinear_reaches_at_a_tight_tolerance(data_dir, name, classes):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    with lzma.open(data_dir / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    model = train(streamcut.rows(X, y), **REST, tol=1e-3)
    assert model.solver == "bundle-dca"
    assert model.converged
    rows = sp.hstack([sp.csr_matrix(X, dtype=np.float64), np.ones((len(y), 1))]).tocsr()
    for k, label in enumerate(model.labels):
        if classes is not None and label not in classes:
            continue
        sign = np.where(y == label, 1.0, -1.0)
        theirs = liblinear.train(sign, sp.csr_matrix(X, dtype=np.float64), "-s 3 -c 1 -B 1 -e 1e-8 -q")
        w = np.array(theirs.w[: rows.shape[1]]) * theirs.get_labels()[0]
        best = 0.5 * w @ w + np.maximum(0.0, 1.0 - sign * (rows @ w)).sum()
        found = model.certificates[k]
        assert found.lower_bound <= best * (1 + 1e-9)
        assert found.primal <= best + 1e-3 * found.c_bar
        assert svm.primal(model.augmented_weights[:, k], rows, sign, 1.0, np.ones(len(y))) == pytest.approx(
            found.primal, rel=1e-9
        )


def test_probabilities_are_the_odds_of_the_classes(tmp_path):
    X, y, _ = problem()
    model = train(streamcut.rows(X, y), **REST, loss="logistic")
    streamcut.save_model(model, tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    p = expit(again.decision_function(X))
    np.testing.assert_allclose(again.probabilities_of(again.decision_function(X)), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    found = streamcut.evaluate(model, (X, y))
    every = np.where(y[:, None] == np.asarray(LABELS), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(values("logistic", every * model.decision_function(X)).sum(axis=1).mean())
    assert found.log_loss < np.log(4)


def test_weights_and_intercepts_are_scikit_learns():
    X, y, _ = problem(300)
    ours = LinearSVM(loss="logistic", strategy="one-vs-rest", intercept="free", tol=0, tol_relative=1e-7).fit(X, y)
    for k, label in enumerate(ours.classes_):
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X.toarray(), y == label)
        np.testing.assert_allclose(ours.intercept_[k], theirs.intercept_[0], atol=3e-3)
        np.testing.assert_allclose(ours.coef_[k], theirs.coef_[0], atol=3e-3)


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
