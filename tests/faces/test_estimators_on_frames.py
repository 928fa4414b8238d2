"""Estimators take frames with categories and missing values: recipe="auto"."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import GridSearchCV, cross_val_score

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


def test_classes_are_learned_from_frames():
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


def test_a_model_of_frames_speaks_of_columns(tmp_path):
    found = LogisticRegression(recipe="auto").fit(ROWS, np.where(SCORE > 0.5, "up", "down"))
    row = LATER.iloc[0].to_dict()
    found.model_.save(tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    assert again.predict(row).tolist() == found.predict(LATER.head(1)).tolist()
    assert again.predict_proba(row)[0] == found.predict_proba(LATER.head(1))[0, 1]
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    with pytest.raises(ValueError, match='recipe="auto" takes frames with categories and missing values'):
        LinearSVM().fit(ROWS, y)
    with pytest.raises(UsageError, match=r"features are made of frames .* not of ndarray"):
        LinearSVM(recipe="auto").fit(np.ones((4, 2)), [0, 1, 0, 1])
    with pytest.raises(UsageError, match="recipe: a store has its features already"):
        LinearSVM(recipe="auto").fit("rows.zarr")
    with pytest.raises(UsageError, match="'none' is neither"):
        LinearSVM(recipe="none").fit(ROWS, y)
    with pytest.raises(UsageError, match="recipe: labels is not an option here"):
        LinearSVM(recipe={"labels": "old"}).fit(ROWS, y)
    with pytest.warns(UserWarning, match="column 'row_id': looks like an identifier; left out"):
        LinearSVM(recipe="auto").fit(ROWS.assign(row_id=range(len(ROWS))), y)
