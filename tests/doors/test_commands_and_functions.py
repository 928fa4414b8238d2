"""Commands, functions and estimators do the same, exports score alike, and exit codes say what was wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from doors.tables import table

import streamcut
from streamcut import sklearn as estimators


@pytest.fixture
def clicks(command):
    """The table t.csv, its store t.zarr, and a model of it, m.npz."""
    frame = table()
    frame.to_csv("t.csv", index=False)
    assert command("convert t.csv t.zarr --label click")[0] == 0
    code, out, _ = command("train t.zarr --loss logistic --C 0.5 -o m.npz --json --quiet")
    assert code == 0
    return frame, json.loads(out.splitlines()[-1])


def test_commands_are_the_functions(clicks, command):
    frame, result = clicks
    model = streamcut.train("t.zarr", loss="logistic", C=0.5)
    assert result["primal"] == model.certificate.primal
    assert np.array_equal(streamcut.load_model("m.npz").weights, model.weights)
    assert np.array_equal(streamcut.train(frame, label="click", loss="logistic", C=0.5).weights, model.weights)

    probabilities = streamcut.predict(model, "t.csv", answer="probabilities")
    assert command("predict m.npz t.csv --answer probabilities -o p.txt")[0] == 0
    assert [float(line.split()[-1]) for line in Path("p.txt").read_text().splitlines()] == list(probabilities)

    code, out, _ = command("evaluate m.npz t.zarr --json")
    assert code == 0
    assert json.loads(out)["accuracy"] == streamcut.evaluate(model, "t.zarr").accuracy
    assert len(command("explain m.npz")[1].splitlines()) == 2 + len(model.weights)
    assert command("verify m.npz t.zarr")[0] == 0


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("train t.zarr -o m.npz", 2, "m.npz.*--force"),
        ("train t.zarr -o n.npz --loss nonsense", 2, "nonsense"),
        ("train t.zarr -o n.npz --no-such-option", 2, "--no-such-option"),
        ("train t.csv -o n.npz", 2, "--label"),
        ("predict t.csv t.csv", 4, "not a streamcut model"),
        ("train none.zarr -o n.npz", 4, "none.zarr"),
        ("train t.zarr -o n.npz --memory 1MB", 7, r"at least \d+"),
        ("train t.zarr -o n.npz --loss logistic --max-passes 1 --tol 1e-9 --require-convergence", 9, "not converged"),
    ],
)
def test_exit_codes_say_what_was_wrong(line, code, words, clicks, command):
    ended, _, err = command(line)
    assert ended == code, err
    assert re.search(words, err), err
    assert "Traceback" not in err


def test_what_is_read_with_a_damaged_file_is_refused_as_corrupt(clicks, command):
    for file in sorted(Path("t.zarr").rglob("*")):
        if file.is_file() and "manifest" not in file.name and file.suffix != ".json":
            file.write_bytes(b"\0" * file.stat().st_size)
    assert command("train t.zarr -o n.npz")[0] == 5


def test_fit_and_tune_choose_what_is_best_on_rows_held_out(command):
    table(600).to_csv("t.csv", index=False)
    code, out, err = command("fit t.csv --label click -o m.npz --store t.zarr")
    assert code == 0, err
    best = re.search(r"C = (\S+) was best", out)
    assert best, out
    assert pytest.approx(float(best[1]), rel=1e-2) == streamcut.load_model("m.npz").C
    assert streamcut.tune("t.zarr", {"C": [1e-4, 1.0]}, folds=3, loss="logistic").model.C == 1.0


_RBF = {"kernel": "rbf", "gamma": 0.5}


@pytest.mark.parametrize(
    ("estimator", "parameters", "options"),
    [
        ("LinearSVM", {"C": 0.5}, {"C": 0.5}),
        ("LinearSVM", {"loss": "squared-hinge", "intercept": "free"}, {"loss": "squared-hinge", "intercept": "free"}),
        ("LogisticRegression", {"l1": 2.0}, {"loss": "logistic", "l1": 2.0}),
        ("LinearSVR", {"loss": "huber"}, {"loss": "huber"}),
        ("KernelSVM", _RBF, {**_RBF, "solver": "smo"}),
        ("StreamcutOutlierDetector", {"nu": 0.3}, {"task": "one-class", "nu": 0.3}),
        ("StreamcutRanker", {}, {"task": "ranking"}),
        ("StreamcutClassifier", {"C": 0.1}, {"task": "sequence", "C": 0.1}),
    ],
)
def test_estimators_are_train(estimator, parameters, options):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 4))
    s = X @ rng.standard_normal(4) + 0.3 * rng.standard_normal(120)
    targets = {"LinearSVR": s, "StreamcutRanker": np.round(s), "StreamcutClassifier": np.clip(np.round(s), 0, 2)}
    y = targets.get(estimator, np.where(s > 0, 1.0, -1.0))
    qid = np.repeat(np.arange(30), 4) if estimator in ("StreamcutRanker", "StreamcutClassifier") else None
    fitted = getattr(estimators, estimator)(**parameters).fit(X, y, **({} if qid is None else {"groups": qid}))
    model = streamcut.train(streamcut.rows(X, y, qid=qid), **options)
    weights = "coefficients" if estimator == "KernelSVM" else "weights"
    assert np.array_equal(getattr(fitted.model_, weights), getattr(model, weights))
    predicted = fitted.predict(X, groups=qid) if estimator == "StreamcutClassifier" else fitted.predict(X)
    np.testing.assert_array_equal(
        predicted, model.predict(X, qid=qid) if estimator == "StreamcutClassifier" else model.predict(X)
    )
