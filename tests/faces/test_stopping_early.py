"""Early stopping on validation rows, callbacks, and results that introduce themselves in a line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import streamcut
from streamcut.cli import cli
from streamcut.errors import UsageError
from streamcut.io.opening import open_dataset

SOLVERS = [("bundle-dca", "hinge"), ("ocas", "logistic"), ("newton", "logistic"), ("cpa", "hinge")]


def run(*arguments, code=0):
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    if code == 0:
        assert found.exit_code == 0, (found.output, found.exception)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Few rows with many features that say nothing: with a large C the best model comes long before the optimum."""
    place, r = tmp_path_factory.mktemp("early"), np.random.default_rng(0)
    w = np.zeros(60)
    w[:5] = 1.0
    for name, n in (("train", 150), ("later", 600)):
        X = r.normal(size=(n, 60))
        y = np.where(X @ w + 2.0 * r.normal(size=n) > 0, "late", "early")
        pd.DataFrame(X, columns=[f"x{j}" for j in range(60)]).assign(y=y).to_csv(place / f"{name}.csv", index=False)
    run("convert", place / "train.csv", place / "train.zarr", "--label", "y", "-q")
    run("convert", place / "later.csv", place / "later.zarr", "--recipe", place / "train.zarr", "-q")
    return place


HARD = {"C": 1000.0, "intercept": "regularised", "tol": 1e-9, "tol_relative": None, "max_passes": 60}


@pytest.mark.parametrize(("solver", "loss"), SOLVERS)
def test_the_best_model_on_validation_rows_comes_out_with_a_true_certificate(folder, solver, loss):
    how = {"loss": loss, "solver": solver, **HARD}
    seen = []
    whole = streamcut.train(folder / "train.zarr", **how)
    early = streamcut.train(
        folder / "train.zarr", **how, validation=folder / "later.csv", early_stopping=2, measure="accuracy", callback=seen.append
    )
    assert early.certificate.stop_reason == "validation"
    assert not early.converged
    assert len(seen) < len(whole.history)
    accuracy = streamcut.evaluate(early, folder / "later.zarr").accuracy
    at = early.history[-1]["iteration"]
    assert len(seen) == at + 1 + 2  # two more brought no better one
    again = streamcut.train(folder / "train.zarr", **{**how, "max_passes": early.history[-1]["passes"]})
    assert streamcut.evaluate(again, folder / "later.zarr").accuracy == accuracy
    best = min(whole.certificate.primal, early.certificate.primal)
    assert early.certificate.lower_bound <= best * (1 + 1e-12)
    X, y = dense(folder / "train.zarr")
    scores = X @ early.weights + early.intercept
    margins = np.where(y == early.labels[1], 1.0, -1.0) * scores
    losses = np.logaddexp(0.0, -margins) if loss == "logistic" else np.maximum(0.0, 1.0 - margins)
    square = early.weights @ early.weights + early.intercept**2
    assert early.certificate.primal == pytest.approx(0.5 * square + HARD["C"] * losses.sum(), rel=1e-9)
    assert "no longer improved on the validation rows" in early.in_words()
    assert streamcut.verify(early, folder / "train.zarr").consistent


def dense(path):
    data = open_dataset(path)
    chunk, X = data.read(0), np.zeros((150, 60))
    X[np.repeat(np.arange(150), np.diff(chunk.indptr)), chunk.indices] = chunk.data
    return X, chunk.y


def test_a_model_that_converges_first_is_returned_converged(folder):
    model = streamcut.train(folder / "train.zarr", C=1e-4, validation=folder / "later.zarr", early_stopping=50)
    plain = streamcut.train(folder / "train.zarr", C=1e-4)
    assert model.certificate.primal <= plain.certificate.primal * 1.5
    assert len(model.history) <= len(plain.history)


def test_several_classes_and_tables_stop_early_by_any_measure(folder, tmp_path):
    r = np.random.default_rng(1)
    frame = pd.DataFrame(r.normal(size=(400, 30)), columns=[f"x{j}" for j in range(30)])
    frame["y"] = [list("abc")[k] for k in np.argmax(frame.to_numpy()[:, :3] + r.normal(size=(400, 3)), axis=1)]
    for loss, measure in (("hinge", "macro_f1"), ("softmax", "log_loss")):
        how = {**HARD, "label": "y", "task": "multiclass", "loss": loss, "intercept": "auto"}
        how |= {"early_stopping": 3, "measure": measure}
        model = streamcut.train(frame[:150], **how, validation=frame[150:].reset_index(drop=True))
        assert model.stop_reason == "validation"
        assert "data" not in model.parameters
    how = ["--label", "y", "--C", 1000, "--tol", 1e-9, "--early-stopping", 2, "--choose-by", "roc_auc"]
    run("train", folder / "train.csv", *how, "-o", tmp_path / "m.npz", "--validation", folder / "later.csv")
    assert streamcut.load_model(tmp_path / "m.npz").stop_reason == "validation"


def test_a_callback_may_end_a_training(folder):
    seen = []
    model = streamcut.train(folder / "train.zarr", **HARD, callback=lambda now: seen.append(now) or len(seen) == 3)
    assert [now.iteration for now in seen] == [0, 1, 2]
    assert len(model.history) == 3
    assert model.stop_reason == "interrupted"
    kernel = streamcut.train(folder / "train.zarr", kernel="rbf", gamma=0.1, solver="bsgd", budget=10, callback=lambda now: True)
    assert len(kernel.history) >= 1


def test_what_cannot_stop_early_is_said(folder, tmp_path):
    data, later = folder / "train.zarr", folder / "later.zarr"
    for match, how in (
        ("give the rows to measure on", {"early_stopping": 2}),
        ("'two' is not a number of iterations", {"early_stopping": "two", "validation": later}),
        ("checkpoints do not keep", {"early_stopping": 2, "validation": later, "checkpoint": str(tmp_path / "c")}),
        ("only for linear solvers", {"early_stopping": 2, "validation": later, "kernel": "rbf", "gamma": 0.1}),
        ("it is for early_stopping", {"measure": "accuracy"}),
        ("cannot choose a model of task binary", {"early_stopping": 2, "validation": later, "measure": "r2"}),
    ):
        with pytest.raises(UsageError, match=match):
            streamcut.train(data, **how)
    refused = run("train", data, "-o", tmp_path / "m.npz", "--validation", later, "--C", "1,2", "--early-stopping", 3, code=2)
    assert "one value of --C" in refused.output


def test_results_introduce_themselves_in_a_line(folder, tmp_path):
    rows = pd.read_csv(folder / "train.csv")
    model = streamcut.train(folder / "train.zarr", loss="logistic")
    X, y = dense(folder / "train.zarr")
    results = [
        streamcut.convert(rows, tmp_path / "s.zarr", label="y"),
        streamcut.evaluate(model, folder / "later.csv"),
        streamcut.tune(folder / "train.zarr", {"C": [0.1, 1.0]}, folds=2),
        streamcut.tune(folder / "train.zarr", {"C": [0.1, 1.0]}, folds=2).best,
        streamcut.fit(rows, label="y", C=1.0),
        streamcut.certify(model, (X, y)),
        streamcut.cross_validate(folder / "train.zarr", folds=2),
        model,
        model.certificate,
    ]
    for result in results:
        assert len(repr(result)) < 400, repr(result)
        assert "\n" not in repr(result)
        assert result._repr_html_().startswith("<table>")
    assert "n_rows=150" in repr(results[0])
    assert "accuracy=" in repr(results[1])


def test_a_report_is_written_from_python(folder, tmp_path):
    model = streamcut.train(folder / "train.zarr", loss="logistic")
    page = streamcut.report(model, tmp_path / "m.html", data=folder / "later.csv", plots=tmp_path / "plots")
    assert "log loss" in (tmp_path / "m.html").read_text()
    assert page.html().startswith("<!doctype html>")
    assert list((tmp_path / "plots").glob("*.svg"))
    with pytest.raises(UsageError, match="force=True"):
        streamcut.report(model, tmp_path / "m.html")
    model.save(tmp_path / "m.npz")
    streamcut.report(tmp_path / "m.npz", tmp_path / "m.html", force=True)
