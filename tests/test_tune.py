"""Grids over C and kernel parameters: the same models as trained one by one, folds of whole shards, the best one chosen."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut.errors import UsageError
from streamcut.evaluation import evaluate
from streamcut.io.memory import MemoryDataset
from streamcut.io.shard_view import ShardView
from streamcut.models.files import load_model
from streamcut.tuning import tune


def arrays(seed=0, n=600, groups=None):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = np.where(X @ np.random.default_rng(9).standard_normal(20) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """(train.zarr of 12 shards, test.zarr)."""
    folder = tmp_path_factory.mktemp("tune")
    for name, seed in (("train", 0), ("test", 1)):
        X, y = arrays(seed)
        dump_svmlight_file(sp.csr_matrix(X), y, str(folder / f"{name}.svm"), zero_based=False)
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), shard_nnz=420)
    return str(folder / "train.zarr"), str(folder / "test.zarr")


@pytest.mark.parametrize("opened", ["store", "memory"])
def test_a_view_of_shards_is_the_data_without_the_others(stores, opened):
    X, y = arrays()
    whole = streamcut.open(stores[0]) if opened == "store" else MemoryDataset(X, y, weight=np.arange(600) + 1.0, shard_nnz=420)
    shards = whole.manifest.shards
    assert len(shards) > 8
    kept = [1, 2, 5]
    view = ShardView(whole, kept)
    first = np.cumsum([0, *(shard.rows for shard in shards)])
    rows = np.concatenate([np.arange(first[i], first[i + 1]) for i in kept])
    weight = rows + 1.0 if opened == "memory" else None
    values = sp.csr_matrix(X.astype(np.float32)) if opened == "store" else X
    same = MemoryDataset(values[rows], y[rows], weight=weight, n_features=whole.manifest.statistics.n_features)
    assert view.manifest.statistics == same.manifest.statistics
    assert [view.read(i).first_row for i in range(3)] == np.cumsum([0, *(shards[i].rows for i in kept[:2])]).tolist()
    options = {"tol": 1e-8, "tol_relative": None, "lanes": 1}
    one, other = streamcut.train(view, **options), streamcut.train(same, **options)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert view.manifest.fingerprint != ShardView(whole, [1, 2, 6]).manifest.fingerprint


def test_linear_models_on_validation_data(stores):
    data, validation = stores
    Cs = [1.0, 1e-4, 0.01]
    found = tune(data, {"C": Cs}, validation=validation, measure="roc_auc")
    assert [cell.options["C"] for cell in found.cells] == sorted(Cs)
    best = max(found.cells, key=lambda cell: cell.mean)
    assert found.best is best
    assert best.options["C"] == found.model.C
    assert evaluate(found.model, validation).roc_auc == best.mean


def test_folds_are_those_of_the_shards_and_the_model_is_of_everything(stores):
    data, Cs = stores[0], [1e-5, 0.1]
    seen = []
    found = tune(data, {"C": Cs}, folds=3, on_model=lambda point, fold, tried: seen.append((fold, point["C"], tried.value)))
    assert [fold for fold, _, _ in seen] == [0, 0, 1, 1, 2, 2]
    whole = streamcut.open(data)
    for fold, C, value in seen:
        shards = range(len(whole.manifest.shards))
        part = ShardView(whole, [i for i in shards if i % 3 != fold])
        held_out = ShardView(whole, [i for i in shards if i % 3 == fold])
        if Cs[0] == C:  # the first of a path is as trained alone
            assert evaluate(streamcut.train(part, C=C), held_out).accuracy == value
    for cell in found.cells:
        assert cell.mean == pytest.approx(np.mean([value for _, C, value in seen if cell.options["C"] == C]))
    alone = streamcut.train(data, C=found.best.options["C"])
    np.testing.assert_array_equal(found.model.weights, alone.weights)


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


def test_a_path_over_nu(stores):
    data, validation = stores
    found = tune(data, {"nu": [0.01, 0.2]}, validation=validation, kernel="rbf", gamma=0.05, solver="sbp")
    assert [cell.options["nu"] for cell in found.cells] == [0.01, 0.2]
    alone = [streamcut.train(data, nu=nu, kernel="rbf", gamma=0.05, solver="sbp") for nu in (0.01, 0.2)]
    assert [cell.mean for cell in found.cells] == [evaluate(model, validation).accuracy for model in alone]


def test_measures_of_the_task():
    X, _ = arrays()
    groups = np.repeat(np.arange(60), 10)
    y = np.round(X @ np.random.default_rng(9).standard_normal(20))
    ranking = tune(MemoryDataset(X, y, qid=groups, shard_nnz=600), {"C": [0.01, 1.0]}, folds=2, task="ranking", max_passes=30)
    assert ranking.best.measure == "pairwise_accuracy"
    classes = MemoryDataset(X, np.digitize(y, [-2, 2]).astype(float), shard_nnz=600)
    for more in ({"strategy": "one-vs-rest"}, {"solver": "ocas"}, {"kernel": "rbf", "solver": "bsca", "epochs": 2.0}):
        several = tune(classes, {"C": [0.1, 1.0]}, folds=2, task="multiclass", **more)
        assert several.best.measure == "accuracy"
        assert several.best.mean > 0.5
    sequence = tune(
        MemoryDataset(X, np.digitize(y, [-2, 2]).astype(float), qid=groups, shard_nnz=600), {"C": [0.1]}, folds=2, task="sequence"
    )
    assert sequence.best.measure == "accuracy"
    with pytest.raises(UsageError, match="pairwise_accuracy"):
        tune(MemoryDataset(X, y, qid=groups, shard_nnz=600), {"C": [1.0]}, folds=2, task="ranking", measure="accuracy")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "validation data or a number of folds"),
        ({"folds": 2, "validation": "x"}, "one of them"),
        ({"folds": 99}, "NEW --shard-nnz 16"),
        ({"folds": 1}, "2 or above"),
        ({"folds": 2, "C": 3.0}, "in the grid already"),
        ({"folds": 2, "grid": {"C": [1.0, 1.0]}}, "once"),
        ({"folds": 2, "grid": {"tol": [1.0]}}, "not tol"),
        ({"folds": 2, "grid": {"C": [1.0], "budget": [5]}}, "budget"),
        ({"folds": 2, "scheduler": "local-cluster"}, "not on Dask"),
    ],
)
def test_what_is_refused(stores, given, message):
    grid = given.pop("grid", {"C": [1.0]})
    with pytest.raises(UsageError, match=message):
        tune(stores[0], grid, **given)


def test_a_stop_ends_it(stores):
    count = iter(range(1000))
    with pytest.raises(KeyboardInterrupt):
        tune(stores[0], {"C": [0.1, 1.0]}, folds=3, stop=lambda: next(count) > 40)


def test_the_command(stores, tmp_path, run):
    data, validation = stores
    model, plot = tmp_path / "best.npz", tmp_path / "grid.svg"
    code, out, err = run("tune", data, "--model", model, "--C", "0.0001,1", "--validation", validation, "--plot", plot)
    assert (code, out) == (0, "")
    assert "accuracy" in err
    assert f"Model written to {model}" in err
    assert b"<svg" in plot.read_bytes()
    best = load_model(model)
    code, out, _ = run("tune", data, "--model", model, "--C", "0.0001,1", "--folds", 3, "--json", "--force", "--tol", "1e-4")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["event"] for line in lines] == ["model"] * 6 + ["cell"] * 2 + ["result"]
    assert lines[-1]["C"] == best.C == load_model(model).C
    assert load_model(model).parameters["tol"] == 1e-4
    assert run("tune", data, "--model", model, "--folds", 3)[0] == 2, "the model is there"
    assert run("tune", data, "--model", tmp_path / "new.npz")[0] == 2
    code, _, err = run("tune", data, "--model", tmp_path / "new.npz", "--folds", 50)
    assert (code, "--shard-nnz" in err) == (2, True)


def test_train_sends_grids_of_kernels_here(stores, tmp_path, run):
    data, validation = stores
    more = ["--kernel", "rbf", "--C", "1,2", "--validation", validation]
    code, _, err = run("train", data, "--model", tmp_path / "m.npz", *more)
    assert (code, "streamcut tune" in err) == (2, True)


def test_the_penalty_is_a_side_of_the_grid(stores, tmp_path, run):
    code, out, err = run(
        "tune", stores[0], "--model", tmp_path / "m.npz", "--C", "0.1,1", "--l1", "0,40", "--validation", stores[1], "--json"
    )
    assert code == 0, err
    cells = [line for line in map(json.loads, out.splitlines()) if line["event"] == "cell"]
    assert [(cell["C"], cell["l1"]) for cell in cells] == [(0.1, 0.0), (1.0, 0.0), (0.1, 40.0), (1.0, 40.0)]
    assert load_model(tmp_path / "m.npz").l1 == json.loads(out.splitlines()[-1])["l1"]
