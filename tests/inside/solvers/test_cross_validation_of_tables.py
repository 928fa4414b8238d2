"""Cross-validation of tables: folds by the values of a column, and by time."""

from __future__ import annotations

from itertools import pairwise

import kit.shared.cross_validation_of_tables
import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.exports.sklearn import TableEncoder

rows = kit.shared.cross_validation_of_tables.rows


TIGHT = {"tol_relative": 1e-6, "tol": 1e-9}


def measured(rows: pd.DataFrame, train: np.ndarray, held: np.ndarray, **convert) -> float:
    """The accuracy on some rows of a model of others, with the recipe of all."""
    found = streamcut.train(rows, label="ill", loss="logistic", convert=convert, **TIGHT)
    X = TableEncoder(found.recipe, found.n_features).fit().transform(rows)
    y = np.array([dict(found.recipe.labels.words)[word] for word in rows.ill])
    model = streamcut.train(
        streamcut.rows(X[train], y[train]), loss="logistic", positive_label=found.labels[1], intercept="free", **TIGHT
    )
    return float(np.mean(model.predict(X[held]) == y[held]))


EXACT = {"loss": "logistic", **TIGHT}


def test_rows_of_a_group_are_in_one_fold(rows, tmp_path):
    convert = {"drop": "day", "standardise": True}
    found = streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", folds=4, **EXACT)
    again = streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", folds=4, **EXACT)
    other = streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", folds=4, seed=1, **EXACT)
    assert found.values("accuracy") == again.values("accuracy")
    assert found.values("accuracy") != other.values("accuracy")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    of_file = streamcut.cross_validate(
        tmp_path / "rows.csv", label="ill", convert=convert, group_column="patient", folds=4, **EXACT
    )
    assert of_file.values("accuracy") == found.values("accuracy")
    alone = streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", folds=12, **EXACT)
    expected = [
        measured(
            rows, (rows.patient != who).to_numpy(), (rows.patient == who).to_numpy(), drop="day", id="patient", standardise=True
        )
        for who in range(12)
    ]
    assert sorted(alone.values("accuracy")) == pytest.approx(sorted(expected))


def test_what_is_measured_on_is_later_than_what_was_trained_on(rows):
    convert = {"drop": "patient", "id": "day", "standardise": True}
    found = streamcut.cross_validate(rows, label="ill", convert=convert, time_column="day", folds=3, **EXACT)
    days = (rows.day - rows.day.min()).dt.days.to_numpy()
    cuts = [30, 60, 90, 999]
    expected = [
        measured(rows, days < begin, (days >= begin) & (days < end), drop="patient", id="day", standardise=True)
        for begin, end in pairwise(cuts)
    ]
    assert found.values("accuracy") == pytest.approx(expected)
