"""The scikit-learn estimators: scikit-learn's own checks and tools, stores instead of arrays, what fit leaves behind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from reference.rows import dump
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from streamcut import convert, load_model, save_model
from streamcut import open as open_store
from streamcut.errors import UsageError
from streamcut.sklearn import (
    KernelSVM,
    LinearSVM,
    LinearSVR,
    StreamcutClassifier,
    StreamcutOutlierDetector,
    StreamcutRanker,
)

STOPS_EARLIER = {  # they compare to 7 digits what is trained to a tolerance, from other rows in another order
    "check_sample_weight_equivalence_on_dense_data": "training stops within its tolerance, which is not 1e-7",
    "check_sample_weight_equivalence_on_sparse_data": "training stops within its tolerance, which is not 1e-7",
}
OF_SEQUENCES = {
    "check_sample_weights_not_an_array": "rows of sequences have no weights",
    "check_sample_weights_not_overwritten": "rows of sequences have no weights",
    "check_class_weight_classifiers": "rows of sequences have no weights",
    "check_sample_weights_pandas_series": "rows of sequences have no weights",
    "check_sample_weights_list": "rows of sequences have no weights",
    "check_sample_weights_shape": "rows of sequences have no weights",
    "check_classifiers_classes": "two labels of sequences have a score each",
    "check_classifiers_train": "two labels of sequences have a score each",
}
CHECKED = {
    "linear": LinearSVM(),
    "budget": StreamcutClassifier(kernel="rbf", epochs=1.0, budget=20, workers=1),
    "smo": KernelSVM(),
    "regression": LinearSVR(),
    "one class": StreamcutOutlierDetector(),
    "ranking": StreamcutRanker(),
    "sequence": StreamcutClassifier(task="sequence"),
}


def _checks():
    for name, estimator in CHECKED.items():
        for number, (bound, check) in enumerate(estimator_checks_generator(estimator)):
            title = getattr(check, "func", check).__name__
            yield pytest.param(bound, check, title, id=f"{name}-{number}-{title}")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(("estimator", "check", "title"), list(_checks()))
def test_scikit_learns_checks(estimator, check, title):
    excused = STOPS_EARLIER | (OF_SEQUENCES if getattr(estimator, "task", "") == "sequence" else {})
    if title in excused:
        pytest.skip(excused[title])
    check(estimator)


def rows(classes: int = 2, n: int = 400, d: int = 12, seed: int = 0):
    """X (csr) and y: the class of the greatest of so many linear scores, with some noise."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = np.argmax(X @ np.random.default_rng(1).standard_normal((d, classes)) + 0.1 * rng.standard_normal((n, classes)), axis=1)
    return X, y


def stored(folder, X, y, qid=None) -> str:
    """A store of the rows: the labels as they are."""
    convert(dump(folder / "rows.svm", X, y, qid), folder / "rows.zarr", dtype="float64", n_features=X.shape[1])
    return str(folder / "rows.zarr")


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVM(),
        LinearSVM(solver="bundle-dca"),
        StreamcutClassifier(kernel="rbf", gamma=0.1, budget=30, epochs=2.0),
        KernelSVM(gamma=0.1),
        KernelSVM(gamma=0.1, solver="sbp"),
        KernelSVM(gamma=0.1, solver="sampled-linear"),
    ],
    ids=repr,
)
def test_a_store_gives_the_same_bits_as_its_arrays(estimator, tmp_path):
    X, y = rows()
    store = stored(tmp_path, X, y)
    by_array = clone(estimator).fit(X, y)
    for given in (store, open_store(store)):
        by_store = clone(estimator).fit(given)
        np.testing.assert_array_equal(by_store.decision_function(X), by_array.decision_function(X))
        np.testing.assert_array_equal(by_store.decision_function(store), by_array.decision_function(X))
        np.testing.assert_array_equal(by_store.predict(store), by_array.predict(X))
        assert by_store.score(store) == by_array.score(X, y)
    np.testing.assert_array_equal(clone(estimator).fit(X.toarray(), y).predict(X.toarray()), by_array.predict(X))


def test_what_fit_leaves_behind(tmp_path):
    X, y = rows()
    svm = LinearSVM(C=0.5).fit(X, np.array(["no", "yes"])[y])
    assert svm.classes_.tolist() == ["no", "yes"]
    assert svm.lower_bound_ <= svm.primal_objective_
    assert svm.gap_ == svm.primal_objective_ - svm.lower_bound_
    assert svm.converged_
    assert len(svm.history_) == svm.n_iter_ + 1
    margins = np.where(y, 1, -1) * (X @ svm.coef_[0] + svm.intercept_[0])
    primal = 0.5 * (svm.coef_[0] @ svm.coef_[0] + svm.intercept_[0] ** 2) + 0.5 * np.maximum(0, 1 - margins).sum()
    assert svm.primal_objective_ == pytest.approx(primal, rel=1e-12)
    save_model(svm.model_, tmp_path / "m.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "m.npz").decision_function(X), svm.decision_function(X))
    again = pickle.loads(pickle.dumps(svm))
    np.testing.assert_array_equal(again.predict(X), svm.predict(X))


def test_rankings_of_queries(tmp_path):
    X, _ = rows()
    y = np.clip(np.round(X @ np.random.default_rng(3).standard_normal(12)), -2, 2)
    queries = np.repeat(np.arange(40), 10)
    svm = StreamcutRanker().fit(X, y, queries)
    assert svm.score(X, y, queries) > 0.9
    assert svm.coef_.shape == (12,)
    np.testing.assert_allclose(svm.predict(X), X @ svm.coef_, atol=1e-12)
    names = np.array([f"q{q:02d}" for q in queries])
    shuffled = np.random.default_rng(0).permutation(400)
    assert svm.score(X[shuffled], y[shuffled], names[shuffled]) == pytest.approx(svm.score(X, y, queries), rel=1e-12)
    store = stored(tmp_path, X, y, queries)
    by_store = StreamcutRanker().fit(store)
    np.testing.assert_array_equal(by_store.coef_, svm.coef_)
    assert by_store.score(store) == svm.score(X, y, queries)
    with pytest.raises(NotFittedError):
        StreamcutRanker().score(X, y)
    with pytest.raises(UsageError, match="groups"):
        StreamcutRanker().fit(store, groups=queries)


def test_sequences(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 6)
    y = np.tile([0, 1, 2, 0, 1, 2], 60)  # the label before tells the label
    X = np.eye(3)[y] * (rng.random(360) < 0.5)[:, None] + 0.3 * rng.standard_normal((360, 3))
    names = np.array(["a", "b", "c"])[y]
    svm = StreamcutClassifier(task="sequence", C=1.0).fit(X, names, groups=groups)
    assert svm.transitions_.shape == (3, 3)
    assert svm.score(X, names, groups=groups) > 0.95 > svm.score(X, names)
    mixed = np.argsort(np.tile(np.arange(6), 60), kind="stable")
    np.testing.assert_array_equal(svm.predict(X[mixed], groups[mixed]), svm.predict(X, groups)[mixed])
    store = stored(tmp_path, sp.csr_array(X), y, groups)
    by_store = StreamcutClassifier(task="sequence", C=1.0).fit(store)
    np.testing.assert_array_equal(by_store.coef_, svm.coef_)
    assert by_store.score(store) == svm.score(X, names, groups=groups)


def test_labels_of_any_kind():
    X, y = rows()
    for labels in (np.array([False, True]), np.array([7, -2])):
        fitted = LinearSVM().fit(X, labels[y])
        assert fitted.score(X, labels[y]) > 0.8
        assert set(fitted.predict(X)) <= set(labels.tolist())
    with pytest.raises(ValueError, match="continuous"):
        LinearSVM().fit(X, np.linspace(0, 1, 400))
