"""What scikit-learn's users rely on: parameters that are taken together, attributes, messages."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from reference.rows import dump
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import streamcut
from streamcut.errors import BadInputError, UsageError
from streamcut.sklearn import (
    KernelSVM,
    LinearSVM,
    LinearSVR,
    LogisticRegression,
    StreamcutClassifier,
    StreamcutOutlierDetector,
    StreamcutRanker,
    StreamcutRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, y = load_iris(return_X_y=True)
TWO = X[:100], y[:100]


# --- parameters that go together ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(l1_only=1.0),
        LinearSVM(loss="squared-hinge", l1_only=1.0),
        LinearSVR(loss="squared", l1_only=1.0),
        LogisticRegression(solver="working-set", l1_only=1.0),
        LinearSVM(solver="ocas"),
        KernelSVM(),
        StreamcutOutlierDetector(nu=0.3),
        StreamcutClassifier(task="sequence", solver="cpa", max_passes=30),
    ],
    ids=repr,
)
def test_a_seed_is_taken_where_nothing_is_drawn_and_changes_nothing(estimator):
    found = clone(estimator).set_params(seed=1).fit(*TWO)
    usual = clone(estimator).fit(*TWO)
    assert found.model_.solver == usual.model_.solver
    np.testing.assert_array_equal(found.predict(TWO[0]), usual.predict(TWO[0]))


def test_a_seed_does_not_choose_the_solver():
    assert {LogisticRegression(seed=seed).fit(*TWO).model_.solver for seed in (0, 1)} == {"newton"}
    with pytest.raises(UsageError, match="seed: 1 is an option of"):
        streamcut.train(TWO, loss="logistic", solver="newton", seed=1)


def test_a_grid_over_kernels():
    grid = {"kernel": ["linear", "rbf", "poly"], "gamma": [0.1, "scale"], "degree": [2], "coef0": [1.0]}
    for machine in (KernelSVM(), StreamcutClassifier(solver="bsca", budget=20)):
        assert GridSearchCV(machine, grid, cv=2, error_score="raise").fit(*TWO).best_score_ > 0.9
    linear = KernelSVM(kernel="linear").fit(*TWO)
    assert KernelSVM(kernel="linear", gamma=0.3).fit(*TWO).primal_objective_ == linear.primal_objective_


def test_words_are_taken_with_hyphens_and_underscores():
    found = LinearSVM(loss="squared_hinge", solver="bundle_dca", strategy="one_vs_rest").fit(X, y)
    expected = LinearSVM(loss="squared-hinge", solver="bundle-dca", strategy="one-vs-rest").fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    found, expected = (LinearSVM(loss=loss).fit(*TWO, np.ones(100)) for loss in ("smoothed_hinge", "smoothed-hinge"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    for theirs, ours in (("squared_error", "squared"), ("pinball", "quantile"), ("epsilon_insensitive", "epsilon-insensitive")):
        found, expected = (StreamcutRegressor(loss=loss).fit(X[:, 1:], X[:, 0]) for loss in (theirs, ours))
        np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_parameters_are_the_options_of_train():
    """All of them, but for what labels, class weights and `score` say."""
    options = re.findall(r"^ *(\w+)  +\S.*$", streamcut.train.__doc__.partition("by name:")[2], flags=re.M)
    names = StreamcutClassifier().get_params(deep=False)
    assert len(options) > 30
    of_others = {"epsilon", "delta", "quantile", "normalisation"}
    assert set(options) - names.keys() <= of_others | {"positive_weight", "positive_label", "validation"}
    assert of_others <= StreamcutRegressor().get_params().keys() | StreamcutRanker().get_params().keys()
    assert names.keys() - set(options) == {"class_weight", "recipe", "verbose"}
    for make in (StreamcutClassifier, StreamcutRegressor, StreamcutRanker, StreamcutOutlierDetector, LinearSVM, KernelSVM):
        described = re.findall(r"^(\w+) : (?:.*, )?default=(.*)\n    \S", make.__doc__, flags=re.M)
        assert dict(described) == {name: repr(value) for name, value in make().get_params(deep=False).items()}


# --- attributes -----------------------------------------------------------------------------------------------------------------

FITTED = {
    LinearSVM(): ("coef_", "intercept_"),
    LinearSVM(strategy="one-vs-rest"): ("coef_", "intercept_"),
    LogisticRegression(): ("coef_", "intercept_"),
    LinearSVR(): ("coef_", "intercept_"),
    StreamcutOutlierDetector(): ("coef_", "offset_"),
    StreamcutRanker(max_passes=20): ("coef_",),
    StreamcutClassifier(task="sequence"): ("coef_", "intercept_", "transitions_"),
    KernelSVM(): ("support_vectors_", "dual_coef_", "intercept_", "gamma_"),
    StreamcutClassifier(kernel="rbf", budget=20): ("support_vectors_", "dual_coef_", "intercept_", "gamma_"),
}


@pytest.mark.parametrize(("estimator", "names"), FITTED.items(), ids=repr)
def test_what_predictions_come_from_cannot_be_changed_behind_them(estimator, names):
    assert not any(hasattr(estimator, name) for name in names)
    fitted = clone(estimator).fit(X, y)
    before = fitted.predict(X)
    for name in names:
        value = getattr(fitted, name)
        with pytest.raises(AttributeError, match=name):
            setattr(fitted, name, value)
        for array in [value.data] if hasattr(value, "indptr") else [value] if isinstance(value, np.ndarray) else []:
            with pytest.raises(ValueError, match="read-only"):
                array *= 2.0
        again = getattr(pickle.loads(pickle.dumps(fitted)), name)
        np.testing.assert_array_equal(*(each.toarray() if hasattr(each, "toarray") else each for each in (value, again)))
    np.testing.assert_array_equal(fitted.predict(X), before)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_support_is_that_of_scikit_learn(sparse):
    rows = csr_array(X) if sparse else X
    ours, theirs = KernelSVM(tol=1e-6, tol_relative=1e-6).fit(rows[50:], y[50:]), SVC(tol=1e-6).fit(rows[50:], y[50:])
    np.testing.assert_array_equal(ours.support_vectors_.toarray(), X[50:][ours.support_])
    assert len(set(ours.support_)) == len(ours.support_) == ours.n_support_.sum()
    assert ours.n_support_.tolist() == np.bincount(y[50:][ours.support_] - 1).tolist()
    assert len(set(ours.support_) ^ set(theirs.support_)) <= 3, "equal rows may change places"
    assert np.abs(ours.n_support_ - theirs.n_support_).max() <= 2
    assert not hasattr(ours, "coef_")
    linear = KernelSVM(kernel="linear", tol=1e-6, tol_relative=1e-6).fit(rows[50:], y[50:])
    np.testing.assert_allclose(linear.coef_, SVC(kernel="linear", tol=1e-6).fit(X[50:], y[50:]).coef_, atol=1e-2)
    np.testing.assert_allclose(linear.decision_function(X), X @ linear.coef_[0] + linear.intercept_, atol=1e-9)


def test_only_vectors_that_are_rows_have_numbers():
    machine, rows = StreamcutClassifier(kernel="rbf", epochs=2.0), {tuple(row) for row in X.tolist()}
    for budget, maintenance in ((200, "merge"), (20, "merge"), (20, "remove")):
        vectors = machine.set_params(budget=budget, maintenance=maintenance).fit(*TWO).support_vectors_.toarray()
        merged = any(tuple(row) not in rows for row in vectors.tolist())
        assert merged == (budget == 20 and maintenance == "merge")
        assert [hasattr(machine, name) for name in ("support_", "n_support_")] == [not merged] * 2
        if not merged:
            np.testing.assert_array_equal(vectors, X[machine.support_])
            assert machine.n_support_.tolist() == np.bincount(y[machine.support_]).tolist()


def test_weights_become_sparse_and_dense_again():
    machine = LogisticRegression(l1=10.0).fit(*TWO)
    dense, scores = machine.coef_, machine.decision_function(X)
    sparse = machine.sparsify().coef_
    assert sparse.nnz == np.count_nonzero(dense) < dense.size
    np.testing.assert_array_equal(machine.decision_function(X), scores)
    np.testing.assert_array_equal(machine.densify().coef_, dense)


def test_probabilities_are_known_before_fit_where_the_loss_or_a_parameter_says_so():
    with_them = [LogisticRegression(), LinearSVM(loss="logistic"), LinearSVM(loss="softmax")]
    for estimator in with_them:
        assert hasattr(estimator, "predict_proba")
        assert hasattr(estimator, "predict_log_proba")
        with pytest.raises(NotFittedError):
            estimator.predict_proba(X)
    for estimator in (LinearSVM(), LinearSVM(loss="squared-hinge"), KernelSVM(), StreamcutClassifier(kernel="rbf")):
        assert not hasattr(estimator, "predict_proba")
        assert not hasattr(clone(estimator).set_params(**({"strategy": "one-vs-rest"} if estimator.kernel == "linear" else
                                                          {})).fit(X, y), "predict_proba")  # fmt: skip
    ways = [StackingClassifier([("a", each)]).fit(*TWO).stack_method_[0] for each in (LogisticRegression(), LinearSVM())]
    assert ways == ["predict_proba", "decision_function"]
    assert LinearSVM().fit(*TWO).calibrate(*TWO).predict_proba(X).shape == (150, 2)


# --- messages -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "rows", "message"),
    [
        (
            LogisticRegression(l1_only=1.0),
            (X, y),
            "^l1_only: 1.0 is an option of task binary, regression, not of task multiclass",
        ),
        (LogisticRegression(intercept="free"), (X, y), "^intercept: .*take strategy one-vs-rest, or a large bias"),
        (LogisticRegression(intercept="free", bias=2.0), TWO, "^bias: it is the feature of a regularised intercept"),
        (LinearSVR(loss="poisson", l1=1.0, intercept="free"), TWO, "^l1: loss poisson .* take intercept regularised"),
        (LogisticRegression(max_passes=0), TWO, "^max_passes: 0 is not a whole number"),
        (LinearSVM(workers=0), TWO, "^workers: 0 is not"),
        (LinearSVM(seed=-1), TWO, "^seed: -1 is not a whole number"),
        (LinearSVM(seed=None), TWO, "^seed: None is not a whole number"),
        (LinearSVM(C=None), TWO, "^C: None is not a number"),
        (KernelSVM(gamma="scal"), TWO, "^gamma: 'scal' is neither a number above 0 nor 'scale' or 'auto'"),
        (LogisticRegression(class_weight={0: -1.0, 1: 2.0}), TWO, "^class_weight: that of class 0 is not a number above 0"),
        (LogisticRegression(class_weight={0: np.nan, 1: 2.0}), TWO, "^class_weight: that of class 0 is not a number above 0"),
        (LinearSVM(solver="bundle_dac"), TWO, "^solver: .* did you mean bundle-dca"),
        (StreamcutClassifier(task="ranking"), TWO, "^task: 'ranking' is neither 'auto' nor 'sequence'"),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else None,
)
def test_refusals_name_parameters(estimator, rows, message):
    with pytest.raises(UsageError, match=message):
        estimator.fit(*rows)


def test_unknown_parameters_are_named():
    with pytest.raises(TypeError, match="LinearSVM has no parameter 'max_iter'"):
        LinearSVM(max_iter=3)


def test_a_class_without_weight_is_named_as_the_user_names_it():
    names = np.array(["bar", "baz", "foo"])[y]
    with pytest.raises(BadInputError, match=r"class 'foo' have weight 0.*class_weight"):
        LogisticRegression(class_weight={"bar": 1, "baz": 2, "foo": 0}).fit(X, names)
    with pytest.raises(BadInputError, match=r"class 'bar' have weight 0"):
        KernelSVM().fit(X, names, (y > 0).astype(float))


def test_what_certificates_advise_is_an_argument_in_python_and_a_flag_in_the_shell(run, tmp_path):
    A, b = X[50:], y[50:]
    dump(tmp_path / "rows.svm", A, b)
    machine = KernelSVM(solver="sampled-linear", gamma=0.5, samples=5, max_time=60.0).fit(A, b)
    assert "a larger samples helps" in machine.model_.in_words()
    options = "--solver sampled-linear --kernel rbf --gamma 0.5 --set samples=5 --tol 1e-3 --max-time 60s"
    _, out, err = run("train", tmp_path / "rows.svm", *options.split(), "-o", tmp_path / "m.npz")
    assert "a larger --set samples helps" in out + err


def test_a_warm_start_from_other_classes_is_refused():
    svm = LinearSVM(warm_start=True).fit(X[:100], np.array(["setosa", "versicolor"])[y[:100]])
    with pytest.raises(UsageError, match=r"of classes \['setosa', .*, and the data has \['versicolor', 'virginica'\]"):
        svm.fit(X[50:], np.array(["setosa", "versicolor", "virginica"])[y[50:]])
