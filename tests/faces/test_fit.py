"""`fit`: from a table to a model, and what is said on the way; `train`, `tune` and `evaluate` take what it takes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamcut
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
    said = "\n".join(found.remarks)
    for remark in (
        "'row': looks like an identifier",
        "'note': taken as text",
        "'same' is constant",
        "(drop='same' leaves it out)",
    ):
        assert remark in said


def test_the_command_says_the_same_in_flags_and_replaces_nothing(tmp_path, run):
    table().to_csv(tmp_path / "t.csv", index=False)
    command = ("fit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m.npz", "--C", "0.1,1")
    code, out, err = run(*command)
    assert code == 0
    assert "(--drop same leaves it out)" in err
    assert "without features" in out
    assert "Converged" in out
    before = (tmp_path / "m.npz").read_bytes()
    code, _, err = run(*command)
    assert (code, "replace it with --force" in err) == (2, True)
    assert (tmp_path / "m.npz").read_bytes() == before
    shown = json.loads(run(*command, "--force", "--json")[1].splitlines()[-1])
    assert shown["event"] == "result"
    assert shown["measures"]["log_loss"] < shown["baseline"]["log_loss"]
    streamcut.convert(table(), tmp_path / "t.zarr", label="y", drop="row")
    with pytest.raises(UsageError, match="replace it with force=True") as refused:
        streamcut.convert(table(), tmp_path / "t.zarr", label="y", drop="row")
    assert "--" not in str(refused.value).replace(str(tmp_path), "")
    with pytest.raises(UsageError, match="label and labels are one option"):
        streamcut.convert(table(), tmp_path / "u.zarr", label="y", labels="y")


def test_groups_and_times_decide_which_rows_are_held_out(tmp_path):
    """Of tables, next to other ids, and of lists of features."""
    frame = table()
    by_group = streamcut.fit(frame, "y", group_column="user", C=1.0, convert={"id": "row, city"})
    assert by_group.how == "by user"
    assert 0.05 * ROWS < by_group.rows[1] < 0.4 * ROWS
    assert not any(name.startswith(("user", "row", "city")) for name in by_group.model.recipe.names)
    assert streamcut.fit(frame, "y", time_column="day", C=1.0, convert={"drop": "day"}).rows == (960, 240)
    lists = {"i": [[0, 1]] * ROWS, "v": [[float(flag), 1.0] for flag in frame.flag], "y": frame.y, "user": frame.user}
    pq.write_table(pa.table(lists), tmp_path / "lists.parquet")
    how = {"group_column": "user", "convert": {"index_column": "i", "value_column": "v"}}
    assert streamcut.fit(tmp_path / "lists.parquet", "y", C=1.0, **how).rows == by_group.rows
    assert len(streamcut.cross_validate(tmp_path / "lists.parquet", label="y", folds=3, **how).table) == 3


def test_several_classes_and_numbers_as_targets():
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


# --- the other doors take what fit takes, with the same words -------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its later rows, both as stores."""
    place = tmp_path_factory.mktemp("doors")
    r = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame({"x": r.normal(size=n), "city": r.choice(list("uvw"), n), "row": np.arange(n)})
    frame["y"] = np.where(frame.x + (frame.city == "u") + r.normal(size=n) > 0, "yes", "no")
    frame[:400].to_csv(place / "train.csv", index=False)
    frame[:400].drop(columns="row").to_csv(place / "rows.csv", index=False)
    frame[400:].to_csv(place / "later.csv", index=False)
    frame[400:].to_parquet(place / "later.parquet", index=False)
    streamcut.convert(place / "train.csv", place / "train.zarr", label="y", drop="row")
    streamcut.convert(place / "later.csv", place / "later.zarr", recipe=place / "train.zarr")
    return place


def test_every_door_makes_the_same_recipe_and_an_intercept_that_costs_nothing(tmp_path, run):
    """Numbers standardised, texts by tf-idf, identifiers left out with a word; unless it is switched off."""
    source, made, left_out = tmp_path / "t.csv", tmp_path / "t.zarr", "column 'row': looks like an identifier; left out"
    table().to_csv(source, index=False)
    for off, options in (
        ((), {}),
        (("--no-standardise", "--text-weights", "counts"), {"standardise": False, "text_weights": "counts"}),
    ):
        assert left_out in run("convert", source, made, "--label", "y", "--force", *off)[2]
        assert run("train", made, "-o", tmp_path / "a.npz", "--force")[0] == 0
        models = [streamcut.load_model(tmp_path / "a.npz")]
        with pytest.warns(UserWarning, match=r"'row': looks like an identifier; left out \(numeric='row' or"):
            models.append(streamcut.train(source, label="y", convert=options))
        models.append(streamcut.fit(source, label="y", C=1.0, convert=options).model)
        for model in models:
            assert model.recipe == models[0].recipe
            assert model.parameters["intercept"] == "free"
        (note,) = (column for column in models[0].recipe.table.columns if column.name == "note")
        (year,) = (column for column in models[0].recipe.table.columns if column.name == "year")
        assert (year.spread != 1.0, note.documents > 0) == (not off, not off)


@pytest.mark.parametrize("later", ["later.csv", "later.parquet", "later.zarr"])
def test_validation_takes_what_evaluate_takes(folder, tmp_path, run, later):
    table = ["--label", "y", "--loss", "logistic", "--C", "0.1,1", "--measure", "log_loss"]
    if later == "later.zarr":  # made by a recipe that knows of another column
        table[0:2] = []
    rows = folder / ("train.zarr" if later == "later.zarr" else "rows.csv")
    assert run("train", rows, *table, "-o", tmp_path / "a.npz", "--validation", folder / later)[0] == 0
    best = min((1.0, 0.1), key=lambda C: log_loss(streamcut.train(folder / "train.zarr", loss="logistic", C=C), folder))
    grid, how = {"C": [0.1, 1.0]}, {"label": "y", "convert": {"drop": "row"}, "loss": "logistic", "measure": "log_loss"}
    rows = pd.read_csv(folder / "later.csv") if later == "later.csv" else folder / later
    tuned = streamcut.tune(pd.read_csv(folder / "train.csv"), grid, validation=rows, **how)
    assert tuned.best.options["C"] == best
    for model in (streamcut.load_model(tmp_path / "a.npz"), tuned.model):
        assert model.parameters["C"] == best
        assert log_loss(model, folder) == pytest.approx(log_loss(tuned.model, folder), abs=1e-3)
    assert "log loss" in run("evaluate", tmp_path / "a.npz", folder / "later.csv")[1]


def log_loss(model, folder):
    return streamcut.evaluate(model, folder / "later.csv").measures()["log_loss"]


def test_what_a_door_cannot_do_is_said(folder, tmp_path, run):
    for flags, said in ((("-o", tmp_path / "m.npz"), "--label is needed"), (("--label", "y", "--dry-run"), "make one of")):
        code, _, err = run("train", folder / "train.csv", *flags)
        assert (code, said in err) == (2, True), err
    with pytest.raises(UsageError, match="a store and \\(X, y\\) have labels of their own"):
        streamcut.train((np.eye(2), [0, 1]), label="y")
    with pytest.raises(NotFoundError, match="nowhere"):
        streamcut.train(tmp_path / "nowhere.csv")
    rows = pd.read_csv(folder / "later.csv").drop(columns="y")
    with pytest.raises(BadInputError, match="no column 'y' with the labels"):
        streamcut.tune(folder / "train.zarr", {"C": [1.0, 2.0]}, validation=rows)


def test_many_labels_are_told_and_notes_are_quiet_on_request(tmp_path, run):
    frame = pd.DataFrame({"x": np.arange(1500) % 7, "same": 7.5, "label": [f"class{k % 20}" for k in range(1500)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    shown = run("convert", tmp_path / "t.csv", tmp_path / "s.zarr", "--label", "label")[2]
    assert "20 labels: class0, class1," in shown
    assert "note: column 'same' is constant" in shown
    assert run("convert", tmp_path / "t.csv", tmp_path / "q.zarr", "--label", "label", "-q")[2] == ""
