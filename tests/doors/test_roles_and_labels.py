"""Labels of tables by any comparison, the roles that columns get when nobody says, and the remarks on likely mistakes."""

from __future__ import annotations

import datetime
import operator
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import streamcut
from streamcut.errors import BadInputError, UsageError

N = 120
COMPARE = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne}
COMPARED = {  # a value of a column, and what it is compared with
    "whole": (np.arange(N) % 7 - 3, -1),
    "real": (np.arange(N) % 5 / 4, 0.5),
    "flag": (np.arange(N) % 3 == 0, True),
    "word": (np.array(["ant", "bee", "cat", "Bee"])[np.arange(N) % 4], "bee"),
    "day": (np.datetime64("2024-02-28") + np.arange(N) % 4, datetime.date(2024, 3, 1)),
}


def frame() -> pa.Table:
    return pa.table({"x": np.arange(N) / 3, **{name: pa.array(values) for name, (values, _) in COMPARED.items()}})


def labels(path: str) -> np.ndarray:
    data = streamcut.open(path)
    return np.concatenate([data.read(shard).y for shard in range(len(data.manifest.shards))])


@pytest.mark.parametrize("column", COMPARED)
def test_labels_are_the_outcome_of_a_comparison(column, folder):
    pa.csv.write_csv(frame(), "t.csv")
    values, value = COMPARED[column]
    said = str(value).lower() if column == "flag" else value
    for sign, compare in COMPARE.items():
        if column == "flag" and sign not in ("==", "!="):
            continue
        expected = np.where(compare(values, np.datetime64(value) if column == "day" else value), 1.0, -1.0)
        for data in (frame(), "t.csv"):
            streamcut.convert(data, "t.zarr", labels=f"{column}{sign}{said}", drop="*", numeric="x", force=True)
            np.testing.assert_array_equal(labels("t.zarr"), expected, err_msg=sign)


GUESSED = {  # values of 100 rows, and the role that they get; None: the column is left out
    "few numbers": ([1, 2, 3, 4] * 25, "numeric"),
    "counting": (list(range(100)), None),
    "counting with gaps": (list(range(0, 200, 2)), "numeric"),
    "user id": (list(range(0, 200, 2)), None),
    "huge": ([2**53, 1] * 50, None),
    "not so huge": ([2**53 - 1, 1] * 50, "numeric"),
    "words": ([f"word{k % 90}" for k in range(100)], "categorical"),
    "keys": ([f"key{k % 91}" for k in range(100)], None),
    "texts": ([f"one two {k % 51}" for k in range(100)], "text"),
    "equal texts": ([f"one two {k % 50}" for k in range(100)], "categorical"),
    "long": (["x" * 41] * 50 + ["y" * 41] * 50, "text"),
    "not so long": (["x" * 40] * 50 + ["y" * 40] * 50, "categorical"),
    "days": (["2024-02-29", "2023-01-01"] * 50, "month,weekday"),
    "times": (["2024-02-29 10:00", "2023-01-01"] * 50, "month,weekday,hour"),
    "clock": ([datetime.time(1), datetime.time(2)] * 50, "hour"),
    "date": ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)] * 50, "month,weekday"),
    "flags": ([True, False] * 50, "categorical"),
    "prices": ([f"${k}.50" for k in range(50)] * 2, "categorical"),
    "nested": ([[1], [2]] * 50, None),
}


def test_roles_are_guessed_from_values():
    said: list[str] = []
    columns = {"y": [0, 1] * 50, **{name: values for name, (values, _) in GUESSED.items()}}
    model = streamcut.train(pa.table(columns), label="y", max_passes=1, convert={"on_told": said.append, "standardise": False})
    roles = {column.name: ",".join(column.parts) or column.role for column in model.recipe.table.columns}
    assert roles == {name: role for name, (_, role) in GUESSED.items() if role}
    left = {re.match(r"column '(.*?)'", line)[1] for line in said if "left out" in line}
    assert left == {name for name, (_, role) in GUESSED.items() if role is None}


@pytest.mark.parametrize(("rows", "noticed"), [(99, False), (100, True)])
def test_likely_mistakes_are_remarked(rows, noticed, folder):
    said: list[str] = []
    columns = {"one": [3.5] * rows, "word": ["a"] * rows, "two": [3.5, 3.5 + 1e-5] * 50, "blank": [None] * 3 + ["b"] * 97}
    y = np.where(np.arange(rows) < 19, "rare", np.where(np.arange(rows) < 39, "Yes", "yes ")).tolist()
    table = pa.table({"y": y, **{name: values[:rows] for name, values in columns.items()}})
    streamcut.convert(table, "t.zarr", labels="y", standardise=False, on_told=said.append)
    shown = "\n".join(said)
    assert set(re.findall(r"column '(\w+)' is constant", shown)) == ({"one", "word"} if noticed else set())
    assert "few rows of a label (rare 19)" in shown
    assert "labels 'Yes' and 'yes ' are spelled alike" in shown


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"numeric": "x:bin1"}, UsageError, "number of bins must be from 2 to 1000"),
        ({"numeric": "x:bin1001"}, UsageError, "number of bins must be from 2 to 1000"),
        ({"ngrams": "2,1"}, UsageError, "sizes are from 1 to 100"),
        ({"ngrams": "1,101"}, UsageError, "sizes are from 1 to 100"),
        ({"ngrams": "1,2,3"}, UsageError, "write 1,2 for runs"),
        ({"time": "day:hours"}, UsageError, "a time has no part 'hours'"),
        ({"time": "day:hour"}, BadInputError, "column 'day' holds dates, which have no hour"),
        ({"categorical": "x", "numeric": "x"}, UsageError, "column 'x' has two roles: categorical and numeric"),
        ({"cross": "word*x"}, UsageError, "'x' is not a categorical or binned column"),
        ({"labels": "real>high"}, UsageError, "'high' cannot be compared with double"),
        ({"numeric": "word"}, BadInputError, "column 'word' holds string, but the recipe takes it as"),
    ],
)
def test_roles_that_do_not_fit_are_refused(options, error, why, folder):
    with pytest.raises(error, match=re.escape(why)):
        streamcut.convert(frame(), "t.zarr", **{"labels": "flag", **options})


@pytest.mark.parametrize("words", [("ant", "bee"), ("ant", "bee", "cat")])
def test_no_training_starts_from_a_model_whose_labels_have_other_numbers(words, folder):
    """Words are numbered in their order: without the first, and with one more, all others have another number."""

    def rows(words):
        return pa.table({"x": np.arange(N) % len(words) + np.arange(N) / 300, "name": np.array(words)[np.arange(N) % len(words)]})

    start = streamcut.train(rows(words), label="name", max_passes=3)
    others = rows((*words[1:], "zebra"))
    with pytest.raises(BadInputError, match=r"warm_start: .*label 'ant' is .* here, and no label in the data"):
        streamcut.train(others, label="name", max_passes=3, warm_start=start)
    assert streamcut.train(rows(words), label="name", max_passes=3, warm_start=start).labels == start.labels
