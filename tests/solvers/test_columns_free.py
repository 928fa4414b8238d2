"""Columns with intercepts that cost nothing: certificates are those of trainings of their own, bits the same whatever runs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.columns import REST, overlap, problem, same
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import streamcut
from streamcut import train, verify
from streamcut.errors import UsageError
from streamcut.sklearn import LinearSVM

FREE = {**REST, "intercept": "free", "tol": None, "tol_relative": 1e-5, "max_passes": 300}


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("C", [0.03, 3.0])
def test_every_class_is_trained_as_it_is_by_itself(loss, C):
    X, y, u = problem(200, weights=True)
    X = sp.csr_array(X + 1.0 * (X != 0.0))
    data = streamcut.rows(X, y, weight=u)
    model = train(data, **{**FREE, "tol_relative": 1e-4}, loss=loss, C=C)
    assert model.problem.free
    for k, label in enumerate(model.labels):
        own = streamcut.rows(X, np.where(y == label, 1.0, -1.0), weight=u)
        alone = train(own, loss=loss, C=C, intercept="free", tol=None, tol_relative=1e-6).certificate
        found = model.certificates[k]
        assert found.converged
        assert found.lower_bound <= alone.primal
        assert alone.lower_bound <= found.primal
    found = verify(model, data)
    assert found.consistent
    model.intercept[1] += 0.5
    assert not verify(model, data).consistent


def test_weights_and_intercepts_are_scikit_learns():
    X, y, _ = problem(300)
    ours = LinearSVM(loss="logistic", strategy="one-vs-rest", intercept="free", tol=0, tol_relative=1e-7).fit(X, y)
    for k, label in enumerate(ours.classes_):
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X.toarray(), y == label)
        np.testing.assert_allclose(ours.intercept_[k], theirs.intercept_[0], atol=3e-3)
        np.testing.assert_allclose(ours.coef_[k], theirs.coef_[0], atol=3e-3)


def test_thresholds_spare_them():
    """The elastic net: next to a general optimiser on w = p − q, p, q ≥ 0."""
    X, y, u = problem(200, weights=True)
    X, (C, l1) = sp.csr_array(X + 1.0 * (X != 0.0)), (1.0, 5.0)
    model = train(streamcut.rows(X, y, weight=u), **FREE, loss="logistic", C=C, l1=l1)
    assert verify(model, streamcut.rows(X, y, weight=u)).consistent
    assert not model.weights.all()
    A, signs = X.toarray(), np.where(y == model.labels[0], 1.0, -1.0)

    def objective(v):
        w, sum_of = v[:10] - v[10:20], signs * (A @ (v[:10] - v[10:20]) + v[20])
        slope = -C * u * signs * expit(-sum_of)
        gradient = np.concatenate([A.T @ slope + w + l1, -(A.T @ slope) - w + l1, [slope.sum()]])
        return 0.5 * w @ w + l1 * v[:20].sum() + C * u @ np.logaddexp(0.0, -sum_of), gradient

    bounds = [(0.0, None)] * 20 + [(None, None)]
    best = minimize(objective, np.zeros(21), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 5000, "ftol": 1e-15})
    found = model.certificates[0]
    assert found.converged
    assert found.lower_bound <= best.fun <= found.primal * (1.0 + 1e-9)
    np.testing.assert_allclose(model.intercept[0], best.x[20], atol=0.05)
    with pytest.raises(UsageError, match=r"^l1: λmax"):
        train((X, y), **FREE, l1="10%")


def test_a_file_and_a_warm_start_go_on_from_what_is_proved(tmp_path):
    X, y, u = problem(weights=True)
    data, given = streamcut.rows(X, y, weight=u), {**FREE, "loss": "logistic"}
    model = train(data, **given)
    streamcut.save_model(model, tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    same(again, model)
    assert train(data, **{**given, "tol_relative": 1e-3}, warm_start=again).history[-1]["passes"] == 1
    for C in (0.2, 5.0):
        overlap(train(data, **given, C=C, warm_start=again), train(data, **given, C=C))


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


@pytest.mark.parametrize("given", [{}, {"loss": "softmax"}])
def test_joint_problems_refuse_them_and_say_what_to_do(given):
    X, y, _ = problem(60)
    with pytest.raises(UsageError, match="take strategy one-vs-rest"):
        train((X, y), task="multiclass", intercept="free", **given)
