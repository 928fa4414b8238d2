"""Cross-validation of tables: folds by the values of a column, and by time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import UsageError

N = 240


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "site": rng.choice(["a", "b"], N), "patient": rng.integers(0, 12, N)})
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N) // 2, unit="D")
    frame["ill"] = np.where(frame.x + (frame.site == "a") + rng.normal(size=N) > 0.5, "yes", "no")
    return frame


TIGHT = {"tol_relative": 1e-6, "tol": 1e-9}


def measured(folder: Path, rows: pd.DataFrame, train: np.ndarray, held: np.ndarray, **convert) -> float:
    """The accuracy on some rows of a model of others, with the recipe of all."""
    found = streamcut.train(rows, label="ill", loss="logistic", convert=convert, **TIGHT)
    streamcut.export(found, folder / "m.joblib")
    X = joblib.load(folder / "m.joblib")[:-1].transform(rows)
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
        measured(tmp_path, rows, rows.patient.ne(who).to_numpy(), rows.patient.eq(who).to_numpy(), id="patient", **convert)
        for who in range(12)
    ]
    assert sorted(alone.values("accuracy")) == pytest.approx(sorted(expected))


def test_what_is_measured_on_is_later_than_what_was_trained_on(rows, tmp_path):
    convert = {"drop": "patient", "id": "day", "standardise": True}
    found = streamcut.cross_validate(rows, label="ill", convert=convert, time_column="day", folds=3, **EXACT)
    days = (rows.day - rows.day.min()).dt.days.to_numpy()
    cuts = [30, 60, 90, 999]
    expected = [
        measured(tmp_path, rows, days < begin, (days >= begin) & (days < end), drop="patient", id="day", standardise=True)
        for begin, end in pairwise(cuts)
    ]
    assert found.values("accuracy") == pytest.approx(expected)


def test_what_makes_no_folds_is_said(rows, tmp_path):
    convert = {"drop": "day"}
    with pytest.raises(UsageError, match="13 folds need at least as many groups, but column 'patient' has 12 values"):
        streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", folds=13)
    with pytest.raises(UsageError, match="group_column and time_column: give one of them"):
        streamcut.cross_validate(rows, label="ill", convert=convert, group_column="patient", time_column="day")
    with pytest.raises(UsageError, match="'patient' is a column of a table, which this data is not"):
        streamcut.cross_validate((np.ones((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])), group_column="patient", folds=2)
    with pytest.raises(UsageError, match="convert: with shuffle the rows are not those of the table"):
        streamcut.cross_validate(rows, label="ill", convert={**convert, "shuffle": 1}, group_column="patient")
    with pytest.raises(UsageError, match="has one time; nothing is later"):
        streamcut.cross_validate(rows.assign(day=rows.day[0]), label="ill", convert={"drop": "patient,day"}, time_column="day")
