"""Cross-validation of tables: folds by the values of a column, and by time."""

from __future__ import annotations

import kit.shared.cross_validation_of_tables
import numpy as np
import pytest

import streamcut
from streamcut.errors import UsageError

rows = kit.shared.cross_validation_of_tables.rows


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
