"""A new user's first model: a table, one command, and then every other command on that model and that table."""

from __future__ import annotations

import json
import shlex

import joblib
import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import BadInputError, UsageError


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    """A folder with clicks.csv and clicks.npz, which the README's first two commands wrote; not to be changed."""
    folder = tmp_path_factory.mktemp("clicks")
    streamcut_here = pytest.MonkeyPatch()
    streamcut_here.chdir(folder)
    rng = np.random.default_rng(0)
    n = 400
    site, age, hours = rng.choice(["news", "mail", "games"], n), rng.integers(16, 80, n), np.sort(rng.integers(0, 900, n))
    frame = pd.DataFrame({"time": pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, "h"), "site": site, "age": age})
    frame["click"] = np.where(rng.random(n) < 1 / (1 + np.exp(1.5 - 2.0 * (site == "games"))), "yes", "no")
    frame.loc[::11, "age"] = np.nan
    frame.to_csv("clicks.csv", index=False)
    frame.iloc[::-1].to_csv("reversed.csv", index=False)
    model = streamcut.fit("clicks.csv", label="click", time_column="time").model
    streamcut.save_model(model, "clicks.npz")
    streamcut.convert("clicks.csv", "same.zarr", recipe=model.recipe)
    yield folder
    streamcut_here.undo()


@pytest.fixture
def here(clicks, monkeypatch):
    monkeypatch.chdir(clicks)
    return clicks


def meta(path) -> dict:
    """What a model file says, without measurements: seconds, and bytes of memory."""
    with np.load(path) as file:
        said = json.loads(file["meta.json"].tobytes())["model"]
    return {**said, "resources": None, "history": [{**line, "seconds": 0} for line in said["history"]]}


def test_a_model_records_the_file_that_it_was_fitted_to_and_equal_fits_give_equal_files(here, run, tmp_path):
    for name in ("a.npz", "b.npz"):
        assert run("fit", "clicks.csv", "--label", "click", "--C", "0.1", "-q", "-o", tmp_path / name)[0] == 0
    assert meta(tmp_path / "a.npz")["parameters"]["data"] == "clicks.csv"
    assert meta(tmp_path / "a.npz") == meta(tmp_path / "b.npz")
    with np.load(tmp_path / "a.npz") as first, np.load(tmp_path / "b.npz") as second:
        assert first.files == second.files
        assert all(first[name].tobytes() == second[name].tobytes() for name in first.files if name != "meta.json")


@pytest.mark.parametrize("data", ["clicks.csv", "frame", "store", "arrays"])
def test_what_is_recorded_of_data(here, data):
    frame = pd.read_csv("clicks.csv")
    given = {"clicks.csv": "clicks.csv", "frame": frame, "store": "same.zarr", "arrays": (np.eye(4), [1, 1, -1, -1])}[data]
    label = {"label": "click"} if data in ("clicks.csv", "frame") else {}
    model = streamcut.train(given, max_passes=1, **label)
    assert model.parameters.get("data") == {"clicks.csv": "clicks.csv", "store": "same.zarr"}.get(data)


VERBS = {
    "info": ["info", "clicks.npz"],
    "verify alone": ["verify", "clicks.npz"],
    "verify": ["verify", "clicks.npz", "clicks.csv"],
    "certify": ["verify", "clicks.npz", "clicks.csv", "--output", "OUT.npz"],
    "evaluate": ["evaluate", "clicks.npz", "clicks.csv"],
    "explain": ["explain", "clicks.npz", "clicks.csv", "--top", "1"],
    "weights": ["explain", "clicks.npz", "--top", "3"],
    "standard errors": ["explain", "clicks.npz", "--standard-errors", "--trained-on", "clicks.csv"],
    "certified": ["predict", "clicks.npz", "clicks.csv", "--answer", "certified", "--trained-on", "clicks.csv"],
    "predict": ["predict", "clicks.npz", "clicks.csv", "--answer", "probabilities"],
    "calibrate": ["calibrate", "clicks.npz", "clicks.csv", "-o", "OUT.npz"],
    "json": ["export", "clicks.npz", "OUT.json"],
    "sklearn": ["export", "clicks.npz", "OUT.joblib"],
    "report": ["report", "clicks.npz", "--data", "clicks.csv", "-o", "OUT.html"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_works_on_the_first_model_with_its_own_table(verb, here, run, tmp_path):
    code, _, err = run(*[word.replace("OUT", str(tmp_path / "out")) for word in VERBS[verb]])
    assert code == 0, err


def test_fit_train_and_folds_have_one_loss_and_one_measure(here, run, tmp_path):
    said = {}
    for name, words in {"fit": ["fit"], "train": ["train"], "folds": ["train", "--folds", "3"]}.items():
        path = tmp_path / f"{name}.npz"
        code, out, err = run(words[0], "clicks.csv", "--label", "click", *words[1:], "--C", "0.1", "-o", path)
        model = streamcut.load_model(path)
        said[name] = out + err
        assert (code, model.parameters["loss"], model.parameters["intercept"]) == (0, "logistic", "free")
        assert "log_loss" in streamcut.evaluate(model, "clicks.csv").measures()
    assert "log loss" in said["fit"]
    assert "  log_loss 0." in said["folds"]
    weights = [streamcut.load_model(tmp_path / f"{name}.npz").weights for name in said]
    np.testing.assert_allclose(weights[1:], [weights[0]] * 2, atol=0.02)


def test_columns_of_a_search_have_the_loss_of_the_model(here):
    found = streamcut.tune("clicks.csv", {"C": [0.1, 1.0]}, label="site", folds=2)
    assert (found.best.measure, found.model.parameters["loss"]) == ("log_loss", "softmax")
    assert streamcut.train("clicks.csv", label="site").parameters["loss"] == "softmax"


def test_verify_says_the_same_of_the_table_the_frame_and_the_store(here, run):
    model, frame = streamcut.load_model("clicks.npz"), pd.read_csv("clicks.csv")
    rows = (frame.drop(columns="click"), frame.click)
    known = streamcut.verify(model, "same.zarr")
    assert known.same_data
    for data in ("clicks.csv", frame, rows, (rows[0], list(rows[1])), frame.to_dict("records")):
        found = streamcut.verify(model, data)
        assert (found.same_data, found.consistent, found.primal) == (True, True, known.primal), type(data)
    code, out, _ = run("verify", "clicks.npz", "--json")
    assert (code, json.loads(out)["primal"]) == (0, known.primal)


def test_the_hinge_of_classes_is_verified_on_a_table(here):
    model = streamcut.train("clicks.csv", label="site", loss="hinge", tol_relative=1e-3)
    assert streamcut.verify(model, "clicks.csv").outcome == "reached"


def test_other_rows_are_refused_and_the_reasons_named(here, run):
    code, _, err = run("verify", "clicks.npz", "reversed.csv")
    assert code == 2
    assert "in another order" in err
    assert "--shard-nnz" in err
    streamcut.convert("clicks.csv", "small.zarr", recipe=streamcut.load_model("clicks.npz").recipe, shard_nnz=100)
    with pytest.raises(UsageError, match="shards of another size"):
        streamcut.verify("clicks.npz", "small.zarr")


@pytest.mark.parametrize(
    ("data", "error", "why"),
    [
        (lambda frame: (frame.drop(columns="click"), ["yes"]), BadInputError, "400 rows, y 1"),
        (lambda frame: frame.drop(columns="click"), BadInputError, "no column 'click'"),
        (lambda frame: frame.drop(columns="site"), BadInputError, "site"),
        (lambda frame: (np.ones(4), [1, 1, 0, 0]), BadInputError, "1 dimension"),
        (lambda frame: 3, UsageError, "int is neither"),
    ],
)
def test_what_is_no_data_for_the_model_is_refused_by_name(here, data, error, why):
    with pytest.raises(error, match=why):
        streamcut.verify("clicks.npz", data(pd.read_csv("clicks.csv")))


def test_rows_left_out_or_shuffled_in_training_are_so_when_it_is_opened_again(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "y": rng.choice(["no", "yes", None], 90)})
    frame.to_csv("rows.csv", index=False)
    for number, options in enumerate([{"missing_labels": "skip"}, {"missing_labels": "skip", "shuffle": 3}]):
        streamcut.save_model(streamcut.train("rows.csv", label="y", convert=options), f"{number}.npz")
        assert run("verify", f"{number}.npz")[0] == 0
        assert streamcut.verify(f"{number}.npz", frame).same_data


def test_what_cannot_hold_a_time_says_so_and_names_what_can(here, run, tmp_path):
    for ending in ("onnx", "liblinear"):
        code, _, err = run("export", "clicks.npz", tmp_path / f"m.{ending}")
        assert code == 2
        assert "json" in err
        assert "sklearn" in err
        assert not (tmp_path / f"m.{ending}").exists()
    assert run("export", "clicks.npz", tmp_path / "m.joblib")[0] == 0
    frame = pd.read_csv("clicks.csv")
    there = joblib.load(tmp_path / "m.joblib").predict_proba(frame)[:, 1]
    np.testing.assert_allclose(there, streamcut.predict("clicks.npz", frame, answer="probabilities"), rtol=1e-12)


def test_rows_of_training_are_noted_wherever_they_lie(here, run, tmp_path):
    for data, noted in (("clicks.csv", True), ("same.zarr", True), ("./clicks.csv", True), ("reversed.csv", False)):
        code, _, err = run("calibrate", "clicks.npz", data, "-o", tmp_path / "c.npz", "--force")
        assert code == 0
        assert ("training rows" in err) == noted, data
    copy = tmp_path / "copy.csv"
    copy.write_bytes((here / "clicks.csv").read_bytes())
    assert "training rows" in run("calibrate", "clicks.npz", copy, "-o", tmp_path / "c.npz", "--force")[2]


def test_explain_refuses_a_kernel_model_before_it_writes(tmp_path, run):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    streamcut.save_model(streamcut.train((X, np.where(X[:, 0] > 0, 1, -1)), kernel="rbf"), tmp_path / "k.npz")
    (tmp_path / "rows.svm").write_text("1 1:0.5\n")
    code, out, err = run("explain", tmp_path / "k.npz", tmp_path / "rows.svm")
    assert (code, out) == (2, "")
    assert "kernel" in err
    code, _, _ = run("explain", tmp_path / "k.npz", tmp_path / "rows.svm", "-o", tmp_path / "why.csv")
    assert code == 2
    assert not (tmp_path / "why.csv").exists()


def test_the_command_in_the_report_trains_the_model_again(here, run, tmp_path):
    run("fit", "clicks.csv", "--label", "click", "--C", "0.1", "-q", "-o", tmp_path / "m.npz")
    run("report", tmp_path / "m.npz", "-o", tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text()
    command = json.loads(page.partition('<script type="application/json" id="numbers">')[2].partition("</script>")[0])["command"]
    again = tmp_path / "again.npz"
    for words in command.split(" && "):
        words = [word.replace("rows.zarr", str(tmp_path / "rows.zarr")) for word in shlex.split(words)]
        if words[1] == "train":
            words[words.index("--output") + 1] = str(again)
        assert run(*words[1:], "-q")[0] == 0
    assert streamcut.load_model(again).fingerprint == streamcut.load_model(tmp_path / "m.npz").fingerprint
    probabilities = [streamcut.predict(path, "clicks.csv", answer="probabilities") for path in (again, tmp_path / "m.npz")]
    np.testing.assert_allclose(*probabilities, atol=0.02)


def test_the_help_of_tol_relative_says_when_training_stops(run):
    """The gap is at most that share of the objective, also where the mean loss at the optimum is far below 1/1000."""
    X = np.concatenate([np.full((3000, 1), 40.0), np.full((3000, 1), -40.0)])
    y = np.sign(X[:, 0])
    found = streamcut.train((X, y), tol=None, tol_relative=0.01, loss="squared-hinge").certificate
    assert found.converged
    assert found.primal < found.c_bar / 1000
    assert found.gap <= 0.01 * found.primal
    (line,) = [line for line in " ".join(run("train", "--help-all")[1].split()).split("--") if line.startswith("tol-relative")]
    assert "at most this share of the objective; 0: off" in line
