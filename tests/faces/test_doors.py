"""`train`, `tune` and `evaluate` take what `fit` takes: a table, text, a store, with the same words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import streamcut
from streamcut.cli import cli
from streamcut.errors import BadInputError, NotFoundError, UsageError


def run(*arguments, code=0):
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    if code == 0:
        assert found.exit_code == 0, found.output
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its later rows, both as stores; the same in svmlight text."""
    place = tmp_path_factory.mktemp("doors")
    r = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame({"x": r.normal(size=n), "city": r.choice(list("uvw"), n), "row": np.arange(n)})
    frame["y"] = np.where(frame.x + (frame.city == "u") + r.normal(size=n) > 0, "yes", "no")
    frame[:400].to_csv(place / "train.csv", index=False)
    frame[:400].drop(columns="row").to_csv(place / "rows.csv", index=False)
    frame[400:].to_csv(place / "later.csv", index=False)
    frame[400:].to_parquet(place / "later.parquet", index=False)
    run("convert", place / "train.csv", place / "train.zarr", "--label", "y", "--drop", "row", "-q")
    run("convert", place / "later.csv", place / "later.zarr", "--recipe", place / "train.zarr", "-q")
    lines = [
        f"{1 if y == 'yes' else -1} 1:{x:.6g} {2 + 'uvw'.index(city)}:1"
        for x, city, y in zip(frame.x, frame.city, frame.y, strict=True)
    ]
    (place / "train.svm").write_text("\n".join(lines[:400]) + "\n")
    (place / "later.svm").write_text("\n".join(lines[400:]) + "\n")
    return place


def test_every_door_makes_the_same_recipe_and_an_intercept_that_costs_nothing(tmp_path):
    """Numbers standardised, texts by tf-idf, identifiers left out with a word; unless it is switched off."""
    r = np.random.default_rng(0)
    words = np.array([f"{c}word" for c in "abcdefgh"])
    frame = pd.DataFrame(
        {"row_id": np.arange(90), "x": r.normal(9, 3, 90), "note": [" ".join(r.choice(words, 5)) for _ in range(90)]}
    )
    frame["y"] = np.where(frame.x + r.normal(size=90) > 9, "yes", "no")
    table, made = tmp_path / "t.csv", tmp_path / "t.zarr"
    frame.to_csv(table, index=False)
    frame = pd.read_csv(table, float_precision="round_trip")
    for off, options in (
        ([], {}),
        (["--no-standardise", "--text-weights", "counts"], {"standardise": False, "text_weights": "counts"}),
    ):
        for command in (
            ["convert", table, made, "--label", "y", "--force", *off],
            ["train", made, "-o", tmp_path / "a.npz", "--force"],
            ["fit", table, "--label", "y", "--C", 1, "-o", tmp_path / "d.npz", "--force", *off],
        ):
            told = run(*command).output
            assert ("column 'row_id': looks like an identifier; left out" in told) == (table in command)
        models = [streamcut.load_model(tmp_path / f"{name}.npz") for name in "ad"]
        with pytest.warns(UserWarning, match=r"'row_id': looks like an identifier; left out \(numeric='row_id' or"):
            models.append(streamcut.train(frame, label="y", convert=options))
        models.append(streamcut.fit(frame, label="y", C=1.0, convert=options).model)
        for model in models:
            assert model.recipe == models[0].recipe
            assert model.parameters["intercept"] == "free"
        x, note = models[0].recipe.table.columns
        assert (x.spread != 1.0, note.documents > 0) == (not off, not off)


@pytest.mark.parametrize("later", ["later.csv", "later.parquet", "later.zarr"])
def test_validation_takes_what_evaluate_takes(folder, tmp_path, later):
    table = ["--label", "y", "--loss", "logistic", "--C", "0.1,1", "--measure", "log_loss"]
    if later == "later.zarr":  # made by a recipe that knows of another column
        table[0:2] = []
    rows = folder / ("train.zarr" if later == "later.zarr" else "rows.csv")
    run("train", rows, *table, "-o", tmp_path / "a.npz", "--validation", folder / later)
    best = min((1.0, 0.1), key=lambda C: log_loss(streamcut.train(folder / "train.zarr", loss="logistic", C=C), folder))
    grid, how = {"C": [0.1, 1.0]}, {"label": "y", "convert": {"drop": "row"}, "loss": "logistic", "measure": "log_loss"}
    rows = pd.read_csv(folder / "later.csv") if later == "later.csv" else folder / later
    tuned = streamcut.tune(pd.read_csv(folder / "train.csv"), grid, validation=rows, **how)
    assert tuned.best.options["C"] == best
    for model in (streamcut.load_model(tmp_path / "a.npz"), tuned.model):
        assert model.parameters["C"] == best
        assert log_loss(model, folder) == pytest.approx(log_loss(tuned.model, folder), abs=1e-3)
    said = run("evaluate", tmp_path / "a.npz", folder / "later.csv").output
    assert "log loss" in said


def log_loss(model, folder):
    return streamcut.evaluate(model, folder / "later.csv").measures()["log_loss"]


def test_what_a_door_cannot_do_is_said(folder, tmp_path):
    assert "--label is needed" in str(run("train", folder / "train.csv", "-o", tmp_path / "m.npz", code=2).exception)
    said = run("train", folder / "train.csv", "--label", "y", "--dry-run", code=2)
    assert said.exit_code == 2
    assert "make one of" in said.output
    with pytest.raises(UsageError, match="a store and \\(X, y\\) have labels of their own"):
        streamcut.train((np.eye(2), [0, 1]), label="y")
    with pytest.raises(NotFoundError, match="nowhere"):
        streamcut.train(tmp_path / "nowhere.csv")
    rows = pd.read_csv(folder / "later.csv").drop(columns="y")
    with pytest.raises(BadInputError, match="no column 'y' with the labels"):
        streamcut.tune(folder / "train.zarr", {"C": [1.0, 2.0]}, validation=rows)


def test_mistakes_in_a_table_are_said_by_convert_and_train(tmp_path):
    r = np.random.default_rng(2)
    n = 1500
    frame = pd.DataFrame({"x": r.normal(size=n), "same": 7.5, "always": "on", "outcome": r.choice(["paid", "unpaid"], n)})
    frame["late"] = np.where(frame.outcome == "unpaid", "Yes", "no")
    frame["score"] = np.where(frame.late == "Yes", 3.0, -1.0) + 0.01 * r.normal(size=n)
    frame.loc[:400, "late"] = frame.late[:401].replace("Yes", "yes")
    frame.loc[frame.late == "yes", "late"] = "Yes"
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = run("convert", tmp_path / "t.csv", tmp_path / "s.zarr", "--label", "late").stderr
    for sentence in (
        "note: column 'same' is constant: uninformative (--drop same leaves it out)",
        "note: column 'always' is constant: uninformative (--drop always leaves it out)",
    ):
        assert sentence in said
    assert "column 'x'" not in said
    assert "column 'same' is constant" in run("train", tmp_path / "t.csv", "--label", "late", "-o", tmp_path / "m.npz").stderr
    with pytest.warns(UserWarning, match=r"'same' is constant.*drop='same' leaves it out"):
        streamcut.train(frame, label="late")
    frame.loc[:40, "late"] = "yes"
    with pytest.warns(UserWarning, match="are spelled alike"):
        streamcut.convert(frame, tmp_path / "f.zarr", label="late")
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = run("convert", tmp_path / "t.csv", tmp_path / "u.zarr", "--label", "late").stderr
    assert "are spelled alike; if they are one, correct the data" in said
    quiet = run("convert", tmp_path / "t.csv", tmp_path / "v.zarr", "--label", "late", "-q").stderr
    assert "note" not in quiet
    frame["late"] = frame.late.str[0].map({"Y": 1, "y": 1, "n": 0}).astype(str)
    frame.loc[5, "late"] = "unknown"
    frame.to_csv(tmp_path / "t.csv", index=False)
    refused = run("convert", tmp_path / "t.csv", tmp_path / "w.zarr", "--label", "late", code=3)
    assert "labels-as words" in str(refused.exception)
    frame["late"] = [f"class{k % 20}" for k in range(n)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "20 labels: class0, class1," in run("convert", tmp_path / "t.csv", tmp_path / "x.zarr", "--label", "late").stderr
