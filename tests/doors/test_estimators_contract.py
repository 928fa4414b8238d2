"""What scikit-learn's users rely on: parameters that are taken together, attributes, messages in the words of the estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import streamcut
from streamcut.errors import BadInputError, UsageError
from streamcut.estimators import (
    BudgetedKernelSVM,
    KernelSVM,
    LinearSVM,
    LinearSVR,
    LogisticRegression,
    OneClassSVM,
    RankingSVM,
    SequenceSVM,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, y = load_iris(return_X_y=True)
TWO = X[:100], y[:100]


# --- parameters that go together ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("random_state", [1, None, np.random.RandomState(3)], ids=["1", "None", "RandomState"])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(l1_only=1.0),
        LinearSVM(loss="squared-hinge", l1_only=1.0),
        LinearSVR(loss="squared_error", l1_only=1.0),
        LogisticRegression(solver="working-set", l1_only=1.0),
        LinearSVM(solver="ocas"),
        KernelSVM(),
        OneClassSVM(nu=0.3),
        SequenceSVM(solver="cpa", max_iter=30),
    ],
    ids=repr,
)
def test_a_seed_is_taken_where_nothing_is_drawn_and_changes_nothing(estimator, random_state):
    found = clone(estimator).set_params(random_state=random_state).fit(*TWO)
    usual = clone(estimator).fit(*TWO)
    assert found.model_.solver == usual.model_.solver
    np.testing.assert_array_equal(found.predict(TWO[0]), usual.predict(TWO[0]))


def test_a_seed_does_not_choose_the_solver():
    assert {LogisticRegression(random_state=seed).fit(*TWO).model_.solver for seed in (0, 1, None)} == {"newton"}
    with pytest.raises(UsageError, match="seed: 1 is an option of"):
        streamcut.train(TWO, loss="logistic", solver="newton", seed=1)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(solver="working-set", l1_only=1.0),
        LinearSVR(solver="working-set", loss="squared_error", l1_only=0.1),
        LinearSVM(solver="working-set", loss="squared-hinge", l1_only="10%"),
    ],
    ids=repr,
)
def test_the_working_set_by_name(estimator):
    assert estimator.fit(*TWO).model_.solver == "working-set"


def test_a_grid_over_kernels():
    grid = {"kernel": ["linear", "rbf", "poly"], "gamma": [0.1, "scale"], "degree": [2], "coef0": [1.0]}
    for machine in (KernelSVM(), BudgetedKernelSVM(budget=20)):
        assert GridSearchCV(machine, grid, cv=2, error_score="raise").fit(*TWO).best_score_ > 0.9
    linear = KernelSVM(kernel="linear").fit(*TWO)
    assert KernelSVM(kernel="linear", gamma=0.3).fit(*TWO).primal_objective_ == linear.primal_objective_


# --- attributes -----------------------------------------------------------------------------------------------------------------

FITTED = {
    LinearSVM(): ("coef_", "intercept_"),
    LinearSVM(strategy="one-vs-rest"): ("coef_", "intercept_"),
    LogisticRegression(): ("coef_", "intercept_"),
    LinearSVR(): ("coef_", "intercept_"),
    OneClassSVM(): ("coef_", "offset_"),
    RankingSVM(max_iter=20): ("coef_",),
    SequenceSVM(): ("coef_", "intercept_", "transitions_"),
    KernelSVM(): ("support_vectors_", "dual_coef_", "intercept_", "gamma_"),
    BudgetedKernelSVM(budget=20): ("support_vectors_", "dual_coef_", "intercept_", "gamma_"),
}


@pytest.mark.parametrize(("estimator", "names"), FITTED.items(), ids=repr)
def test_what_predictions_come_from_cannot_be_changed_beside_them(estimator, names):
    assert not any(hasattr(estimator, name) for name in names)
    fitted = clone(estimator).fit(X, y)
    before = fitted.predict(X)
    for name in names:
        value = getattr(fitted, name)
        with pytest.raises(AttributeError, match=f"{name} of {type(fitted).__name__} .* cannot be set; fit again"):
            setattr(fitted, name, value)
        for array in [value.data] if hasattr(value, "indptr") else [value] if isinstance(value, np.ndarray) else []:
            with pytest.raises(ValueError, match="read-only"):
                array *= 2.0
        again = getattr(pickle.loads(pickle.dumps(fitted)), name)
        np.testing.assert_array_equal(*(each.toarray() if hasattr(each, "toarray") else each for each in (value, again)))
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_scores_are_those_of_the_attributes():
    two, three = LinearSVM().fit(*TWO), LogisticRegression().fit(X, y)
    np.testing.assert_allclose(two.decision_function(X), X @ two.coef_[0] + two.intercept_, atol=1e-12)
    np.testing.assert_allclose(three.decision_function(X), X @ three.coef_.T + three.intercept_, atol=1e-12)


def test_probabilities_are_known_before_fit_where_the_loss_or_a_parameter_says_so():
    with_them = [LogisticRegression(), LinearSVM(loss="logistic"), LinearSVM(loss="softmax"), KernelSVM(probability=True)]
    for estimator in with_them:
        assert hasattr(estimator, "predict_proba")
        assert hasattr(estimator, "predict_log_proba")
        with pytest.raises(NotFittedError):
            estimator.predict_proba(X)
    for estimator in (LinearSVM(), LinearSVM(loss="squared-hinge"), KernelSVM(), BudgetedKernelSVM()):
        assert not hasattr(estimator, "predict_proba")
        assert not hasattr(clone(estimator).set_params(**({"strategy": "one-vs-rest"} if "strategy" in estimator.get_params() else
                                                          {})).fit(X, y), "predict_proba")  # fmt: skip
    ways = [StackingClassifier([("a", each)]).fit(*TWO).stack_method_[0] for each in (LogisticRegression(), LinearSVM())]
    assert ways == ["predict_proba", "decision_function"]
    assert LinearSVM().fit(*TWO).calibrate(*TWO).predict_proba(X).shape == (150, 2)


# --- messages -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "rows", "said", "unsaid"),
    [
        (LogisticRegression(l1_only=1.0), (X, y), "l1_only: 1.0 is an option of two classes, numbers, not of several", "solver"),
        (LinearSVM(loss="logistic", strategy="one-vs-rest", l1_only=1.0), (X, y), "l1_only: 1.0 is an option of two", "solver"),
        (LogisticRegression(intercept_penalty=False), (X, y), r"intercept_penalty: .*LinearSVM\(.*intercept_scaling=10", "bias"),
        (LogisticRegression(intercept_penalty=False, intercept_scaling=2.0), TWO, "^intercept_scaling: .*ty=False", "bias"),
        (LinearSVR(loss="poisson", l1=1.0, intercept_penalty=False), TWO, "intercept_penalty=True", "intercept regularised"),
        (LogisticRegression(max_iter=0), TWO, "max_iter: 0 is not a whole number", "max_passes"),
        (LinearSVM(n_jobs=0), TWO, "n_jobs: 0 is not", "workers"),
        (KernelSVM(solver="sdca"), TWO, "fit_intercept: .*fit_intercept=False", "bias"),
        (LinearSVM(random_state=-1), TWO, "random_state: -1 is not a whole number", "seed"),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else None,
)  # fmt: skip
def test_refusals_use_the_words_of_the_estimator(estimator, rows, said, unsaid):
    with pytest.raises(UsageError, match=said) as error:
        estimator.fit(*rows)
    assert unsaid not in str(error.value)


def test_a_class_without_weight_is_named_as_the_user_names_it():
    names = np.array(["bar", "baz", "foo"])[y]
    with pytest.raises(BadInputError, match=r"class 'foo' have weight 0.*class_weight"):
        LogisticRegression(class_weight={"bar": 1, "baz": 2, "foo": 0}).fit(X, names)
    with pytest.raises(BadInputError, match=r"class 'bar' have weight 0"):
        KernelSVM().fit(X, names, (y > 0).astype(float))


def test_what_certificates_advise_is_an_argument_in_python_and_a_flag_in_the_shell(run, tmp_path):
    A, b = X[50:], y[50:]
    lines = [f"{k} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) for k, row in zip(b, A.tolist(), strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    machine = KernelSVM(solver="sampled-linear", gamma=0.5, samples=5, max_time=60.0).fit(A, b)
    assert "a larger samples helps" in machine.model_.in_words()
    options = "--solver sampled-linear --kernel rbf --gamma 0.5 --samples 5 --tol 1e-3 --max-time 60s"
    _, out, err = run("train", tmp_path / "rows.svm", *options.split(), "-o", tmp_path / "m.npz")
    assert "a larger --samples helps" in out + err
