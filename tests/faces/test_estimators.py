"""The scikit-learn estimators: scikit-learn's own checks and tools, stores and frames instead of arrays, what makes no sense."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from reference.rows import dump
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from streamcut import convert, load_model, train
from streamcut import open as open_store
from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
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


def test_what_fit_leaves_behind():
    X, y = rows()
    svm = LinearSVM(C=0.5).fit(X, np.array(["no", "yes"])[y])
    assert svm.classes_.tolist() == ["no", "yes"]
    assert svm.converged_
    assert 0.0 <= svm.gap_ == svm.primal_objective_ - svm.lower_bound_
    assert len(svm.history_) == svm.n_iter_ + 1
    for labels in (np.array([False, True]), np.array([7, -2])):  # labels of any kind
        assert set(LinearSVM().fit(X, labels[y]).predict(X)) <= set(labels.tolist())
    with pytest.raises(ValueError, match="continuous"):
        LinearSVM().fit(X, np.linspace(0, 1, 400))


def test_rankings_of_queries(tmp_path):
    X, _ = rows()
    y = np.clip(np.round(X @ np.random.default_rng(3).standard_normal(12)), -2, 2)
    queries, mixed = np.repeat(np.arange(40), 10), np.random.default_rng(0).permutation(400)
    svm = StreamcutRanker().fit(X, y, queries)
    assert svm.score(X, y, queries) > 0.9
    np.testing.assert_allclose(svm.predict(X), X @ svm.coef_, atol=1e-12)
    names = np.array([f"q{q:02d}" for q in queries])[mixed]
    assert svm.score(X[mixed], y[mixed], names) == pytest.approx(svm.score(X, y, queries), rel=1e-12)
    store = stored(tmp_path, X, y, queries)
    by_store = StreamcutRanker().fit(store)
    np.testing.assert_array_equal(by_store.coef_, svm.coef_)
    assert by_store.score(store) == svm.score(X, y, queries)
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


# --- what makes no sense --------------------------------------------------------------------------------------------------------


def plain():
    X = np.random.default_rng(0).standard_normal((200, 6))
    return X, (X @ np.arange(6) > 0).astype(int)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Paths of two stores: the rows, and the same with twice the features."""
    folder, (X, y) = tmp_path_factory.mktemp("options"), plain()
    for name, Z in (("narrow", X), ("wide", np.hstack([X, X]))):
        convert(dump(folder / f"{name}.svm", Z, y), folder / f"{name}.zarr", dtype="float64")
    return folder / "narrow.zarr", folder / "wide.zarr"


def with_one(value: float):
    X, y = plain()
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
        call(*plain())


def test_stores_of_another_width(stores):
    narrow, wide = stores
    X, _ = plain()
    svm = LinearSVM().fit(narrow)
    for call in (svm.predict, svm.decision_function, svm.score, svm.evaluate, svm.calibrate):
        for given in (wide, str(wide), open_store(wide)):
            with pytest.raises(BadInputError, match=r"feature \d+ .*the model has 6 features"):
                call(given)
    assert LinearSVM().fit(wide).predict(narrow).shape == (200,), "features that are not there are 0"
    with pytest.raises(ValueError, match="12 features"):
        svm.predict(np.hstack([X, X]))


def test_labels_that_are_numbers_are_those_of_stores(stores):
    X, y = plain()
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
    X, y = plain()
    weight = np.random.default_rng(3).random(len(y))
    expected = SVC(class_weight=class_weight).fit(X, y, weight)._gamma
    assert KernelSVM(class_weight=class_weight).fit(X, y, weight).gamma_ == pytest.approx(expected, rel=1e-9)
    assert train((X, y, weight), kernel="rbf", budget=5).kernel.gamma == pytest.approx(expected, rel=1e-9)


# --- frames with categories and missing values: recipe="auto" -------------------------------------------------------------------


def frame(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """(rows, numbers that hang on them)."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"size": rng.normal(50.0, 500.0, n), "site": rng.choice(["a", "b", "c"], n), "old": rng.random(n) < 0.3})
    score = rows["size"].to_numpy() / 500 + 2.0 * (rows.site == "a") - rows.old + 0.3 * rng.normal(size=n)
    rows.loc[rng.random(n) < 0.1, "size"] = np.nan
    rows.loc[rng.random(n) < 0.1, "site"] = None
    return rows, score


ROWS, SCORE = frame(400, 0)
LATER, TRUE = frame(200, 1)


def test_classes_are_learned_from_frames_and_the_model_speaks_of_columns(tmp_path):
    words = np.where(SCORE > 0.5, "up", "down")
    found = LogisticRegression(recipe="auto").fit(ROWS, words)
    assert found.score(LATER, np.where(TRUE > 0.5, "up", "down")) > 0.8
    assert found.n_features_in_ == len(found.encoder_.recipe.names) == found.coef_.shape[1]
    assert {"size", "site=a", "old=true", "size is missing"} <= set(found.encoder_.recipe.names)
    expected = found.predict_proba(LATER)
    np.testing.assert_array_equal(found.predict_proba(pl.from_pandas(LATER)), expected)
    np.testing.assert_array_equal(found.predict_proba(LATER.iloc[:, ::-1]), expected)
    np.testing.assert_array_equal(found.predict_proba(LATER.to_dict("records")), expected)
    np.testing.assert_array_equal(found.predict_proba(LATER[50:60]), expected[50:60])
    with pytest.raises(BadInputError, match="no column 'site'"):
        found.predict(LATER.drop(columns="site"))
    with pytest.warns(UserWarning, match="values of site that training did not see: 1"):
        found.predict(LATER.head(1).assign(site="new"))
    row = LATER.iloc[0].to_dict()
    found.model_.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.predict(row).tolist() == found.predict(LATER.head(1)).tolist()
    assert again.predict_proba(row)[0] == expected[0, 1]
    assert again.explain(row)[0].parts[0].name in found.encoder_.recipe.names


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVM(recipe="auto"),
        LinearSVR(recipe="auto", epsilon=0.1),
        StreamcutClassifier(kernel="rbf", recipe="auto", budget=30, epochs=3.0),
        StreamcutRegressor(kernel="rbf", recipe="auto", budget=30, epochs=3.0),
        KernelSVM(recipe="auto"),
        StreamcutOutlierDetector(recipe="auto"),
        StreamcutRanker(recipe="auto"),
        StreamcutClassifier(task="sequence", recipe="auto"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_estimator_makes_the_same_of_frames_as_of_their_features(estimator):
    numbers = isinstance(estimator, RegressorMixin | StreamcutRanker)
    y = SCORE if numbers else (SCORE > 0.5).astype(int)
    with warnings.catch_warnings(action="ignore"):
        found = clone(estimator).fit(ROWS, y)
        X = found.encoder_.transform(ROWS)
        alone = clone(estimator).set_params(recipe=None).fit(X, y)
        np.testing.assert_array_equal(found.predict(LATER), alone.predict(found.encoder_.transform(LATER)))
    assert alone.encoder_ is None


def test_grids_and_folds_of_scikit_learn_take_frames():
    y = (SCORE > 0.5).astype(int)
    shuffled = np.random.default_rng(0).permutation(len(ROWS))
    assert cross_val_score(LogisticRegression(recipe="auto"), ROWS.iloc[shuffled], y[shuffled], cv=4).mean() > 0.8
    grid = GridSearchCV(LinearSVM(recipe={"missing": "zero"}), {"C": [0.1, 1.0]}, cv=3).fit(ROWS, y)
    assert "site is missing" not in grid.best_estimator_.encoder_.recipe.names
    assert grid.score(LATER, (TRUE > 0.5).astype(int)) > 0.8


def test_training_goes_on_with_the_recipe_that_is_there():
    y = (SCORE > 0.5).astype(int)
    found = LinearSVM(recipe="auto").fit(ROWS, y)
    warm = LinearSVM(recipe="auto", warm_start=True).fit(ROWS, y)
    assert warm.set_params(C=2.0).fit(ROWS, y).converged_
    plain = (
        LinearSVM(recipe="auto").fit(ROWS, y).set_params(recipe=None).fit(np.ones((4, 2)) * [[1], [2], [3], [4]], [0, 0, 1, 1])
    )
    assert plain.n_features_in_ == 2
    found.calibrate(LATER, (TRUE > 0.5).astype(int))
    assert found.predict_proba(LATER).shape == (200, 2)


def test_what_is_asked_for_wrongly_is_said():
    y = (SCORE > 0.5).astype(int)
    for recipe, rows, error, said in (
        (None, ROWS, ValueError, 'recipe="auto" takes frames with categories and missing values'),
        ("auto", np.ones((400, 2)), UsageError, r"features are made of frames .* not of ndarray"),
        ("auto", "rows.zarr", UsageError, "recipe: a store has its features already"),
        ("none", ROWS, UsageError, "'none' is neither"),
        ({"labels": "old"}, ROWS, UsageError, "recipe: labels is not an option here"),
    ):
        with pytest.raises(error, match=said):
            LinearSVM(recipe=recipe).fit(rows, *([] if isinstance(rows, str) else [y]))
    with pytest.warns(UserWarning, match="column 'row_id': looks like an identifier; left out"):
        LinearSVM(recipe="auto").fit(ROWS.assign(row_id=range(len(ROWS))), y)
