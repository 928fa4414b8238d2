"""What the estimators can be asked for: every option of their solvers, and what they say to arguments that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference.rows import dump
from sklearn.svm import SVC

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.sklearn import KernelSVM, LinearSVM, StreamcutRanker


def rows(n: int = 200, d: int = 6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ np.arange(d) > 0).astype(int)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Paths of two stores: the rows, and the same with twice the features."""
    folder, (X, y) = tmp_path_factory.mktemp("options"), rows()
    for name, Z in (("narrow", X), ("wide", np.hstack([X, X]))):
        streamcut.convert(dump(folder / f"{name}.svm", Z, y), folder / f"{name}.zarr", dtype="float64")
    return folder / "narrow.zarr", folder / "wide.zarr"


def with_one(value: float):
    X, y = rows()
    X[3, 4] = value
    return X, y


@pytest.mark.parametrize(
    ("call", "kind", "complaint"),
    [
        (lambda X, y: LinearSVM().fit(*with_one(np.nan)), ValueError, "contains NaN"),
        (lambda X, y: LinearSVM().fit(*with_one(np.inf)), ValueError, "infinity"),
        (lambda X, y: LinearSVM().fit(sp.csr_array(with_one(np.nan)[0]), y), ValueError, "contains NaN"),
        (lambda X, y: LinearSVM().fit([["a", "b"]] * 4, [0, 1, 0, 1]), ValueError, "could not convert string"),
        (lambda X, y: LinearSVM().fit(X, y, -np.ones(200)), ValueError, "Negative values.*sample_weight"),
        (lambda X, y: LinearSVM().fit(X, y, np.ones(3)), ValueError, r"sample_weight.shape == \(3,\), expected \(200,\)"),
        (lambda X, y: LinearSVM().fit(X, np.full(200, "a")), ValueError, "one class only: 'a'"),
        (lambda X, y: LinearSVM(class_weight={0: 0.0}).fit(X, y), ValueError, "all rows of class 0 have weight 0"),
        (lambda X, y: LinearSVM(class_weight={7: 1.0}).fit(X, y), ValueError, "not in class_weight"),
        (lambda X, y: LinearSVM().fit(X[0], y[:1]), ValueError, "Expected 2D array, got 1D"),
        (lambda X, y: LinearSVM().fit(X, y).predict(X[0]), ValueError, "Expected 2D array, got 1D"),
        (lambda X, y: LinearSVM().fit("nowhere.zarr"), NotFoundError, "nowhere.zarr: no such file"),
        (lambda X, y: LinearSVM().fit(X, y).predict("nowhere.zarr"), NotFoundError, "nowhere.zarr: no such file"),
        (lambda X, y: KernelSVM(solver="ocas").fit(X, y), UsageError, "kernel: ocas trains linear models; for rbf take solver"),
        (lambda X, y: LinearSVM(memory=10**9).fit(X, y), UsageError, "memory: 1000000000 is no text such as '2GB'"),
        (lambda X, y: LinearSVM(memory="1MB").fit(X, y), MemoryBudgetError, "needs at least"),
        (lambda X, y: LinearSVM(solver="cpa", sweeps=3).fit(X, y), UsageError, "sweeps: 3 is an option of bundle-dca"),
        (lambda X, y: StreamcutRanker().fit(X, np.array(["a", "b"])[y]), ValueError, "ranked by numbers, not by <U1 such as '"),
        (lambda X, y: StreamcutRanker().fit(X, y, np.ones(3)), ValueError, "inconsistent numbers of samples"),
        (lambda X, y: LinearSVM().fit(X, y).calibrate(X, y + 1), ValueError, r"did not see: \[2\]; the classes are \[0, 1\]"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense(call, kind, complaint):
    with pytest.raises(kind, match=complaint):
        call(*rows())


def test_stores_of_another_width(stores):
    narrow, wide = stores
    X, _ = rows()
    svm = LinearSVM().fit(narrow)
    for call in (svm.predict, svm.decision_function, svm.score, svm.evaluate, svm.calibrate):
        for given in (wide, str(wide), streamcut.open(wide)):
            with pytest.raises(BadInputError, match=r"feature \d+ .*the model has 6 features"):
                call(given)
    assert LinearSVM().fit(wide).predict(narrow).shape == (200,), "features that are not there are 0"
    with pytest.raises(ValueError, match="12 features"):
        svm.predict(np.hstack([X, X]))


def test_labels_that_are_numbers_are_those_of_stores(stores):
    X, y = rows()
    svm = LinearSVM().fit(X, y)
    assert svm.score(stores[0]) == svm.score(X, y)
    assert svm.model_.labels == (0.0, 1.0)
    other = LinearSVM().fit(X, y + 5)
    assert other.model_.labels == (5.0, 6.0)
    with pytest.raises(BadInputError, match="has label 1, but the model knows only 5 and 6"):
        other.score(stores[0])
    named = LinearSVM().fit(X, np.array(["no", "yes"])[y])
    assert set(named.predict(stores[0])) == {"no", "yes"}
    for call in (named.score, named.evaluate, named.calibrate):
        with pytest.raises(UsageError, match=r"labels of stores are numbers, but the classes are \['no', 'yes'\]"):
            call(stores[0])


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.1, 1: 10.0}])
def test_weights_do_not_change_an_automatic_gamma(class_weight):
    X, y = rows()
    weight = np.random.default_rng(3).random(len(y))
    expected = SVC(class_weight=class_weight).fit(X, y, weight)._gamma
    assert KernelSVM(class_weight=class_weight).fit(X, y, weight).gamma_ == pytest.approx(expected, rel=1e-9)
    assert streamcut.train((X, y, weight), kernel="rbf", budget=5).kernel.gamma == pytest.approx(expected, rel=1e-9)
