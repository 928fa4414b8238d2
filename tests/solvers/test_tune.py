"""Grids over C and kernel parameters: the same models as trained one by one, folds in shared passes, the best one chosen."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import evaluate, load_model, tune
from streamcut.errors import UsageError


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((600, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = np.where(X @ np.random.default_rng(9).standard_normal(20) + 0.5 * rng.standard_normal(600) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """(train.zarr of 12 shards, test.zarr)."""
    folder = tmp_path_factory.mktemp("tune")
    for name, seed in (("train", 0), ("test", 1)):
        with streamcut.create(folder / f"{name}.zarr", shard_nnz=420) as out:
            out.append(*arrays(seed), weight=np.ones(600))  # as others have, for which kernels are compiled
    return str(folder / "train.zarr"), str(folder / "test.zarr")


def test_all_folds_and_values_of_c_share_each_pass(stores, tmp_path):
    """5 folds × 4 C and the models of everything: the data is read hardly more often than the slowest of them needs."""
    Cs = [0.01, 0.1, 1.0, 10.0]
    streamcut.convert(stores[0], tmp_path / "one.zarr")  # shards of a few rows take more passes, some columns more than others
    found = tune(tmp_path / "one.zarr", {"C": Cs}, folds=5, row_cache="0", workers=2)
    alone = streamcut.train(tmp_path / "one.zarr", C=10.0, row_cache="0", solver="bundle-dca")
    assert len(found.table) == 20
    assert all(line["converged"] and line["lower_bound"] <= line["primal"] for line in found.table)
    assert found.resources["groups"] == 1
    assert found.resources["readings"] <= 1.3 * alone.readings + 1, "a pass to measure all models"


def test_kernels_gamma_and_budget(stores):
    data, validation = stores
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.2], "budget": [5, 40]}
    found = tune(data, grid, validation=validation, kernel="rbf", solver="bsca")
    assert len(found.cells) == 8
    assert found.best.mean == max(cell.mean for cell in found.cells)
    options = found.best.options
    assert isinstance(options["budget"], int)
    alone = streamcut.train(data, kernel="rbf", solver="bsca", **options)
    np.testing.assert_array_equal(alone.coefficients, found.model.coefficients)
    assert evaluate(alone, validation).accuracy == found.best.mean


def test_each_task_is_tuned_by_its_measure():
    X, _ = arrays()
    y, qid = np.round(X @ np.random.default_rng(9).standard_normal(20)), np.repeat(np.arange(60), 10)
    ranks, classes = streamcut.rows(X, y, qid=qid), np.digitize(y, [-2, 2]).astype(float)
    chains, several = streamcut.rows(X, classes, qid=qid), streamcut.rows(X, classes, weight=np.ones(600))
    assert tune(ranks, {"C": [0.01, 1.0]}, folds=2, task="ranking", max_passes=30).best.measure == "pairwise_accuracy"
    assert tune(chains, {"C": [0.1]}, folds=2, task="sequence").best.measure == "accuracy"
    for more in ({"strategy": "one-vs-rest"}, {}, {"kernel": "rbf", "solver": "bsca", "epochs": 2.0}):
        best = tune(several, {"C": [0.1, 1.0]}, folds=2, task="multiclass", **more).best
        assert best.measure == "accuracy"
        assert best.mean > 0.5
    with pytest.raises(UsageError, match="pairwise_accuracy"):
        tune(ranks, {"C": [1.0]}, folds=2, task="ranking", measure="accuracy")


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_a_grid_with_free_intercepts_has_them_in_one_set_of_passes(task):
    X, y = arrays()
    y = y if task == "binary" else np.digitize(X @ np.arange(20.0), [-9, 0, 9])
    strategy = {"strategy": "one-vs-rest"} if task == "multiclass" else {}
    how = {"task": task, **strategy, "intercept": "free", "solver": "bundle-dca", "tol": None, "tol_relative": 1e-3}
    tuned = tune((X[:240], y[:240].astype(float), np.ones(240)), {"C": [0.1, 1.0]}, folds=3, **how)
    assert tuned.resources["groups"] == 1
    assert tuned.model.problem.free
    assert tuned.model.converged


def test_folds_that_leave_one_label_are_named():
    X, _ = arrays()
    with pytest.raises(UsageError, match=r"^intercept: without fold \d all rows of positive weight have one label"):
        tune((X[:60], np.where(np.arange(60) == 7, 1.0, -1.0)), {"C": [1.0]}, folds=3, intercept="free", measure="accuracy")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "validation data or a number of folds"),
        ({"folds": 2, "validation": "x"}, "give either validation data"),
        ({"folds": 999}, "has 600"),
        ({"folds": 2, "group_column": "label"}, "qid"),
        ({"folds": 2.5}, "2 or above"),
        ({"folds": 1}, "2 or above"),
        ({"folds": 2, "C": 3.0}, "already in the grid"),
        ({"folds": 2, "grid": {"C": [1.0, 1.0]}}, "once"),
        ({"folds": 2, "grid": {"max_time": [1.0]}}, "not max_time"),
        ({"folds": 2, "grid": {}}, "not nothing"),
        ({"folds": 2, "grid": {"solver": ["smo", "ocas"]}}, "are tuned separately"),
        ({"folds": 2, "grid": {"loss": "hinge"}}, "one or more values"),
        ({"folds": 2, "grid": {"C": [1.0], "budget": [5]}}, "budget"),
        ({"folds": 2, "scheduler": "local-cluster", "scale": "std"}, "runs on threads only"),
        ({"folds": 2, "scheduler": "local-cluster", "grid": {"solver": ["ocas"]}}, "runs on threads only"),
    ],
)
def test_what_is_refused(stores, given, message):
    grid = given.pop("grid", {"C": [1.0]})
    with pytest.raises(UsageError, match=message):
        tune(stores[0], grid, **given)


def test_a_stop_keeps_the_best_so_far_of_all_rows(stores):
    seen = []
    how = {"solver": "ocas", "on_model": lambda *result: seen.append(result), "stop": lambda: len(seen) > 0}
    found = tune(stores[0], {"C": [0.01, 0.1, 1.0]}, validation=stores[1], **how)
    assert [cell.options["C"] for cell in found.cells] == [0.01]
    assert found.model.converged
    assert found.model.C == 0.01
    looks = iter(range(30))
    together = tune(stores[0], {"C": [0.01, 1.0]}, validation=stores[1], tol=1e-9, stop=lambda: next(looks, None) is None)
    assert together.resources["groups"] == 1
    assert not together.model.converged


def test_the_command(stores, tmp_path, run):
    data, validation = stores
    model, plot = tmp_path / "best.npz", tmp_path / "grid.svg"
    grid = ["--C", "0.0001,1", "--positive-weight", "1,2"]
    code, out, err = run("train", data, "--output", model, *grid, "--validation", validation, "--plot", plot)
    assert (code, out) == (0, "")
    assert "accuracy" in err
    assert f"Model written to {model}" in err
    assert b"<svg" in plot.read_bytes()
    code, out, _ = run("train", data, "--output", model, "--C", "0.0001,1", "--folds", 3, "--json", "--force", "--tol", "1e-4")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["event"] for line in lines] == ["trained"] * 8 + ["model"] * 6 + ["cell"] * 2 + ["result"]
    assert sorted((-1 if line["fold"] is None else line["fold"]) for line in lines[:8]) == [-1, -1, 0, 0, 1, 1, 2, 2]
    assert lines[-1]["C"] == load_model(model).C
    assert load_model(model).parameters["tol"] == 1e-4
    assert run("train", data, "--output", model, "--folds", 3)[0] == 2, "the model is there"
    assert run("train", data, "--output", tmp_path / "new.npz", "--measure", "f1")[0] == 2


def test_a_path_on_the_command_line(stores, tmp_path, run):
    """Over C in increasing order; over one penalty in decreasing order, where weights become nonzero one by one."""
    data, validation = stores
    kept = ["--validation", validation, "--checkpoint", tmp_path / "run"]
    code, out, err = run("train", data, "-o", tmp_path / "m.npz", "--C", "1,0.1,0.001", "--measure", "f1", *kept, "--json")
    assert code == 0, err
    tried = [line for line in map(json.loads, out.splitlines()) if line["event"] == "model"]
    assert [line["C"] for line in tried] == [0.001, 0.1, 1.0]
    assert max(tried, key=lambda line: line["measures"]["f1"])["C"] == load_model(tmp_path / "m.npz").C
    assert not (tmp_path / "run").exists()
    for several in (["--C", "1,2"], ["--l1", "1,2"], ["--C", "1,2", "--folds", "2", "--validation", validation]):
        code, _, err = run("train", data, "-o", tmp_path / "n.npz", *several)
        assert (code, "--validation DATA" in err) == (2, True)
    code, _, err = run("train", data, "-o", tmp_path / "l.npz", "--C", 0.5, "--l1", "0.1,3", *kept)
    assert code == 0, err
    shown = [line.split() for line in err.splitlines() if line.startswith("l1 ")]
    assert [line[:3] for line in shown] == [["l1", "3", "weights"], ["l1", "0.1", "weights"]]
    assert load_model(tmp_path / "l.npz").problem.l1 in (0.1, 3.0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("more", [[], ["--solver", "ocas"]])
def test_a_run_that_was_killed_goes_on_to_the_same_models(stores, tmp_path, run, more):
    how = "--C 0.01,1 --folds 3 --json --tol 1e-5 --set lanes=1 --workers 2"
    common = ["train", stores[0], *how.split(), *more]
    assert run(*common, "--output", tmp_path / "undisturbed.npz")[0] == 0
    folder = tmp_path / "run"
    kept = ["--output", tmp_path / "m.npz", "--checkpoint", folder, "--checkpoint-every", "0s"]
    command = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", *map(str, [*common, *kept])]
    for failpoint in ("train.shard.5:4:kill", "train.shard.2:3:kill"):
        resume = ["--resume"] if folder.exists() else []
        environment = {**os.environ, "STREAMCUT_FAILPOINT": failpoint}
        assert subprocess.run([*command, *resume], env=environment, capture_output=True, timeout=100).returncode == -9
        assert any(folder.rglob("*.checkpoint"))
    code, _, err = run(*common, *kept, "--resume")
    assert code == 0, err
    one, other = load_model(tmp_path / "undisturbed.npz"), load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.certificate == other.certificate
    assert not folder.exists()


def test_losses_and_weights_of_classes_are_problems_over_the_same_rows(stores, tmp_path, run):
    grid = {"loss": ["logistic", "hinge"], "positive_weight": [4.0, 1.0], "C": [0.01, 0.1]}
    found = tune(stores[0], grid, validation=stores[1], row_cache="0", workers=2, measure="f1")
    points = [(line["C"], line["loss"], line["positive_weight"]) for line in found.table]
    assert points == [(C, loss, weight) for loss in grid["loss"] for weight in (1.0, 4.0) for C in grid["C"]]
    for line in found.table:
        how = {name: line[name] for name in ("C", "loss", "positive_weight")}
        alone = streamcut.train(stores[0], **how, row_cache="0", tol=1e-3)
        assert alone.certificate.lower_bound <= line["primal"]
        assert line["lower_bound"] <= alone.certificate.primal
        assert line["converged"]
    assert found.resources["groups"] == 4, "a training for each loss and weight"
    passes = [max(line["passes"] for line in found.table[first : first + 2]) for first in range(0, 8, 2)]
    assert found.resources["readings"] == sum(passes)
    given = ["--loss", "logistic,hinge", "--positive-weight", "1,4", "--measure", "f1", "--set", "row-cache=0"]
    command = ["train", stores[0], "--output", tmp_path / "m.npz", "--C", "0.01,0.1", "--validation", stores[1], *given]
    code, _, err = run(*command)
    best = load_model(tmp_path / "m.npz")
    assert (code, f"loss {found.best.options['loss']}" in err) == (0, True), err
    assert (best.C, best.parameters["loss"], best.problem.positive_weight) == tuple(found.best.options.values())
    for wrong in ("sweeps", "C=1,2", "sweep=3", "kernel-cache=1MB,2MB"):
        assert run(*command, "--force", "--set", wrong)[0] == 2
