"""One-vs-rest and grids with intercepts that cost nothing, next to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from kit.columns import REST, problem
from sklearn.linear_model import LogisticRegression

import streamcut
from streamcut import verify
from streamcut.errors import UsageError
from streamcut.sklearn import LinearSVM


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
    assert tuned.model.free
    assert tuned.model.converged
    assert verify(tuned.model, streamcut.rows(X, y)).consistent


def test_folds_that_leave_one_label_are_named():
    X, y, _ = problem(60)
    y = np.where(np.arange(60) == 7, 1.0, -1.0)
    with pytest.raises(UsageError, match=r"^intercept: without fold \d all rows of positive weight have one label"):
        streamcut.tune((X, y), {"C": [1.0]}, folds=3, intercept="free", measure="accuracy")
