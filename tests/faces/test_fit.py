"""`fit`: from a table to a model, and what is said on the way."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import streamcut
from streamcut.cli import cli
from streamcut.errors import BadInputError, NotFoundError, UsageError

ROWS = 1200


def table(seed=0):
    r = np.random.default_rng(seed)
    words = [f"{c}word" for c in "abcdefgh"]
    frame = pd.DataFrame({
        "row": np.arange(ROWS),
        "year": 2000.0 + r.integers(0, 5, ROWS),
        "flag": r.random(ROWS) < 0.5,
        "city": r.choice(["New York", "Rome"], ROWS),
        "note": [" ".join(r.choice(words, 6)) for _ in range(ROWS)],
        "same": 3,
        "user": r.integers(0, 60, ROWS),
        "day": pd.date_range("2024-01-01", periods=ROWS, freq="h").astype(str),
    })  # fmt: skip
    frame.loc[::7, "year"] = np.nan
    odds = 2.0 * frame.flag - 1.0 + frame.note.str.contains("aword") + (frame.year.fillna(2002) - 2002)
    frame["y"] = np.where(r.random(ROWS) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return frame


def run_main(*arguments):
    """(exit code, stderr) of the program."""
    command = [sys.executable, "-P", "-m", "streamcut", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def run(*arguments):
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


@pytest.fixture(scope="module")
def found():
    return streamcut.fit(table(), "y", C=[0.1, 1.0])


def test_a_frame_becomes_a_model_that_beats_the_shares_of_labels(found):
    assert found.model.converged
    assert found.measures["log_loss"] < 0.9 * found.baseline["log_loss"]
    assert found.shares["yes"] == pytest.approx((table().y == "yes").mean())
    assert sum(found.rows) == ROWS
    assert set(found.tried) == {0.1, 1.0}
    assert len(repr(found)) < 200
    text = found.in_words()
    assert "without features" in text
    assert found.certificate.in_words() in text
    assert "flag=true" in [each.name for each in found.largest]


def test_it_says_what_it_left_out_and_what_is_constant(found):
    said = "\n".join(found.remarks)
    assert "'row': looks like an identifier" in said
    assert "'note': taken as text" in said
    assert "'same' is constant" in said


def test_python_names_arguments_and_the_command_line_options(tmp_path):
    found = streamcut.fit(table(), label="y", C=1.0)
    assert "(drop='same' leaves it out)" in "\n".join(found.remarks)
    table().to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m.npz", "--C", 1)
    assert "(--drop same leaves it out)" in done.output
    for k in range(2):
        done = run_main("convert", tmp_path / "t.csv", tmp_path / "t.zarr", "--label", "y", "--drop", "row")
        assert done[0] == 2 * k
    assert "replace it with --force" in done[1]
    with pytest.raises(UsageError, match="replace it with force=True") as refused:
        streamcut.convert(table(), tmp_path / "t.zarr", label="y", drop="row")
    assert "--" not in str(refused.value).replace(str(tmp_path), "")
    with pytest.raises(UsageError, match="label and labels are one option"):
        streamcut.convert(table(), tmp_path / "u.zarr", label="y", labels="y")


def test_groups_and_times_decide_which_rows_are_held_out():
    frame = table()
    by_group = streamcut.fit(frame, "y", group_column="user", C=1.0)
    assert by_group.how == "by user"
    assert 0.05 * ROWS < by_group.rows[1] < 0.4 * ROWS
    assert not any(name.startswith("user") for name in by_group.model.recipe.names)
    latest = streamcut.fit(frame, "y", time_column="day", C=1.0, convert={"drop": "day"})
    assert latest.rows == (960, 240)


def test_groups_are_held_out_of_lists_and_beside_other_ids(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = table()
    lists = {"i": [[0, 1]] * ROWS, "v": [[float(flag), 1.0] for flag in frame.flag], "y": frame.y, "user": frame.user}
    pq.write_table(pa.table(lists), tmp_path / "lists.parquet")
    how = {"index_column": "i", "value_column": "v"}
    kept, others = streamcut.fit(tmp_path / "lists.parquet", "y", group_column="user", C=1.0, convert=how), {"id": "row, city"}
    assert kept.rows == streamcut.fit(frame, "y", group_column="user", C=1.0).rows
    names = streamcut.fit(frame, "y", group_column="user", C=1.0, convert=others).model.recipe.names
    assert not any(name.startswith(("user", "row", "city")) for name in names)
    found = streamcut.cross_validate(tmp_path / "lists.parquet", label="y", group_column="user", folds=3, convert=how)
    assert len(found.table) == 3


def test_several_classes_and_numbers_as_targets(tmp_path):
    r = np.random.default_rng(3)
    x = r.normal(size=(600, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": np.array(["u", "v", "w"])[np.digitize(x[:, 0], [-0.5, 0.5])]})
    classes = streamcut.fit(frame, "kind", C=1.0)
    assert classes.model.task == "multiclass"
    assert classes.measures["log_loss"] < classes.baseline["log_loss"]
    numbers = streamcut.fit(frame.assign(t=3 * frame.a + 100 + 0.1 * r.normal(size=600)), "t", C=1.0, convert={"drop": "kind"})
    assert numbers.model.task == "regression"
    assert numbers.measures["r2"] > 0.9 > 0.1 > numbers.baseline["r2"]


def test_the_same_seed_gives_the_same_model_and_a_store_is_kept(tmp_path):
    first = streamcut.fit(table(), "y", C=1.0, store=tmp_path / "rows.zarr")
    assert first.store == str(tmp_path / "rows.zarr")
    second = streamcut.fit(tmp_path / "rows.zarr", C=1.0)
    np.testing.assert_array_equal(first.model.weights, second.model.weights)
    assert first.measures == second.measures
    assert streamcut.verify(first.model, tmp_path / "rows.zarr").consistent


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        ({"label": "z"}, UsageError, "no column 'z'"),
        ({"label": None}, UsageError, "label is needed: the column"),
        ({"validation": "0%"}, UsageError, "not a share of the rows"),
        ({"validation": "soon"}, UsageError, "not a share of the rows"),
        ({"validation": True}, UsageError, "not a share of the rows"),
        ({"group_column": "user", "time_column": "day"}, UsageError, "group_column and time_column: give one of them"),
        ({"group_column": "nobody"}, UsageError, "no column 'nobody'"),
        ({"time_column": "city"}, BadInputError, "city"),
        ({"time_column": "same"}, UsageError, "one time"),
        ({"warm_start": "m.npz"}, UsageError, "does not take it"),
        ({"checkpoint": "run"}, UsageError, "where to keep the store"),
        ({"los": "hinge"}, UsageError, "loss"),
        ({"measure": "nothing"}, UsageError, "measure"),
    ],
)
def test_what_cannot_be_is_refused(given, error, reason):
    with pytest.raises(error, match=reason):
        streamcut.fit(table(), **{"label": "y", "C": 1.0, **given})


def test_the_command_says_it_and_replaces_nothing(tmp_path):
    table().to_csv(tmp_path / "rows.csv", index=False)
    command = ["fit", tmp_path / "rows.csv", "--label", "y", "-o", tmp_path / "m.npz", "--C", "0.1,1"]
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert "without features" in done.stdout
    assert "Converged" in done.stdout
    before = (tmp_path / "m.npz").read_bytes()
    with pytest.raises(UsageError, match="exists"):
        run(*command)
    assert (tmp_path / "m.npz").read_bytes() == before
    told = json.loads(run(*command, "--force", "--json").stdout.splitlines()[-1])
    assert told["event"] == "result"
    assert told["measures"]["log_loss"] < told["baseline"]["log_loss"]
    with pytest.raises(NotFoundError):
        run("fit", tmp_path / "none.csv", "--label", "y", "-o", tmp_path / "n.npz")
