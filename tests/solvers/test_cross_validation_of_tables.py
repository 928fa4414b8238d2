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

    def validated(data, **more):
        how = {"label": "ill", "convert": convert, "group_column": "patient", "folds": 4, **EXACT, **more}
        return streamcut.cross_validate(data, **how).values("accuracy")

    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert validated(rows) == validated(tmp_path / "rows.csv") != validated(rows, seed=1)
    expected = [
        measured(tmp_path, rows, rows.patient.ne(who).to_numpy(), rows.patient.eq(who).to_numpy(), id="patient", **convert)
        for who in range(12)
    ]
    assert sorted(validated(rows, folds=12)) == pytest.approx(sorted(expected))


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


def test_what_makes_no_folds_is_said(rows):
    arrays, one_day = (np.ones((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])), rows.assign(day=rows.day[0])
    day, both = {"label": "ill", "convert": {"drop": "day"}}, {"label": "ill", "convert": {"drop": "patient,day"}}
    for data, how, said in (
        (rows, {**day, "group_column": "patient", "folds": 13}, "13 folds need at least as many .*'patient' has 12 values"),
        (rows, {**day, "group_column": "patient", "time_column": "day"}, "group_column and time_column: give one of them"),
        (arrays, {"group_column": "patient", "folds": 2}, "'patient' is a column of a table, which this data is not"),
        (rows, {"label": "ill", "convert": {"shuffle": 1}, "group_column": "patient"}, "with shuffle the rows are not those of"),
        (one_day, {**both, "time_column": "day"}, "has one time; nothing is later"),
    ):
        with pytest.raises(UsageError, match=said):
            streamcut.cross_validate(data, **how)
