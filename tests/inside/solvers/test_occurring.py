"""Features that occur in no row take no memory, and models are those of the others alone, to the last bit."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import verify
from streamcut.execution.occurring import LEAST, OccurringDataset, occurring
from streamcut.io.memory import MemoryDataset

N, D, WIDE = 300, 40, 3 * LEAST

TASKS = {
    "binary": {},
    "binary by ocas": {"solver": "ocas"},
    "without a bias": {"bias": 0.0, "solver": "cpa"},
    "elastic net": {"l1": 0.5, "loss": "logistic"},
    "scaled": {"scale": "std", "loss": "squared-hinge"},
    "numbers": {"task": "regression", "loss": "huber"},
    "one class": {"task": "one-class"},
    "f1": {"loss": "f1"},
    "ranking": {"task": "ranking"},
    "crammer-singer": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
}


def rows(task: str, seed: int = 0):
    """(X of D features, y, qid)."""
    rng = np.random.default_rng(seed)
    sparse = sp.random_array((N, D - 1), density=0.3, rng=rng, data_sampler=rng.standard_normal)
    X = sp.hstack([rng.uniform(1.0, 2.0, (N, 1)), sparse]).tocsr()  # no row is empty
    scores = X @ rng.standard_normal(D)
    if task == "multiclass":
        return X, np.digitize(scores, [-1.0, 1.0]).astype(float), None
    if task in ("regression", "ranking"):
        return X, scores.round(1), np.repeat(np.arange(N // 10), 10) if task == "ranking" else None
    return X, np.ones(N) if task == "one-class" else np.where(scores > 0.0, 1.0, -1.0), None


def places() -> np.ndarray:
    return np.sort(np.random.default_rng(7).choice(WIDE, D, replace=False))


def spread(X: sp.csr_array, *, zeros: bool = False) -> sp.csr_array:
    """The features of X at `places` of WIDE ones; with `zeros` entries of 0 at others."""
    wide = sp.csr_array((X.data, places()[X.indices].astype(np.int32), X.indptr), shape=(X.shape[0], WIDE))
    if not zeros:
        return wide
    every = sp.coo_array(wide)
    others = np.setdiff1d(np.arange(WIDE), places())[:: WIDE // N][:N]
    data, row = np.append(every.data, np.zeros(len(others))), np.append(every.row, np.arange(len(others)))
    order = np.lexsort((np.append(every.col, others), row))
    indptr = np.searchsorted(row[order], np.arange(N + 1))
    return sp.csr_array((data[order], np.append(every.col, others)[order].astype(np.int32), indptr), shape=wide.shape)


def certificates(model):
    return model.certificates


@pytest.mark.thirds
@pytest.mark.parametrize("task", TASKS)
def test_a_model_is_that_of_the_features_that_occur(task, tmp_path):
    options = {**TASKS[task], "max_passes": 12}
    X, y, qid = rows(options.get("task", "binary"))
    wide = streamcut.rows(spread(X), y, qid=qid, shard_nnz=X.nnz // 3)
    assert isinstance(occurring(wide), OccurringDataset)
    few, many = streamcut.train(streamcut.rows(X, y, qid=qid, shard_nnz=X.nnz // 3), **options), streamcut.train(wide, **options)
    assert many.n_features == WIDE
    np.testing.assert_array_equal(many.weights[places()], few.weights)
    assert np.count_nonzero(many.weights) == np.count_nonzero(few.weights)
    assert certificates(many) == certificates(few)
    found = verify(many, wide)
    assert found.consistent
    assert found.same_data
    streamcut.save_model(many, tmp_path / "m.npz")
    loaded = streamcut.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.weights, many.weights)
    assert verify(loaded, wide) == found


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    X, y, _ = rows("binary")
    path = tmp_path_factory.mktemp("wide") / "rows.zarr"
    with streamcut.create(path, shard_nnz=X.nnz // 3, memory="4GB") as made:
        made.append(spread(X), y)
    return path


def test_entries_of_zero_are_no_features():
    X, y, _ = rows("binary")
    data = streamcut.rows(spread(X, zeros=True), y)
    assert data.manifest.statistics.nnz > X.nnz
    assert occurring(data).manifest.statistics.n_features == D
    model = streamcut.train(data, tol_relative=1e-6, tol=None)
    assert np.count_nonzero(model.weights) == D
    assert verify(model, data).consistent
    primal = verify(model, data).primal
    assert verify(model, streamcut.rows(spread(X), y), force=True).primal == pytest.approx(primal, rel=1e-12)


def test_only_where_it_pays():
    X, y, _ = rows("binary")
    assert isinstance(occurring(streamcut.rows(X, y)), MemoryDataset)
    most = sp.csr_array(np.eye(1, LEAST, dtype=np.float32) + (np.arange(LEAST) % 8 > 2)[None, :])
    assert isinstance(occurring(streamcut.rows(sp.vstack([most, most]).tocsr(), np.array([1.0, -1.0]))), MemoryDataset)


def test_the_plan_holds_vectors_of_the_features_that_occur(store):
    plans = []
    streamcut.train(store, on_plan=plans.append, max_passes=1)
    assert any(f"{D + 1} features" in what for what, _ in plans[0].lines), plans[0].lines


@pytest.mark.thirds
@pytest.mark.parametrize("far", [0.0, 1000.0])
@pytest.mark.parametrize("gamma", ["auto", 0.1])
def test_vectors_of_a_budget_are_as_long_as_features_occur(tmp_path, far, gamma):
    """Arrays in memory keep all features: the model of a store has the bits of theirs."""
    X, y, _ = rows("binary")
    X = sp.hstack([X[:, :1] + sp.csr_array(np.full((N, 1), far)), X[:, 1:]]).tocsr() if far else X
    with streamcut.create(tmp_path / "wide.zarr", shard_nnz=X.nnz // 3, memory="4GB") as made:
        made.append(spread(X), y)
    plans, options = [], {"solver": "bsca", "kernel": "rbf", "gamma": gamma, "budget": 20, "epochs": 2}
    found = streamcut.train(tmp_path / "wide.zarr", **options, on_plan=plans.append)
    expected = streamcut.train(streamcut.rows(spread(X), y, shard_nnz=X.nnz // 3), **options)
    assert any(f"vectors × {D} features" in what for what, _ in plans[0].lines), plans[0].lines
    assert found.support.shape == (20, WIDE)
    assert (found.kernel.centre is not None) == (far > 0.0)
    assert (found.support != expected.support).nnz == 0
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    np.testing.assert_array_equal(found.decision_function(spread(X)), expected.decision_function(spread(X)))
    again = streamcut.train(tmp_path / "wide.zarr", **options, warm_start=found)
    assert again.support.shape[1] == WIDE


_PEAK = """
import sys
from streamcut.cli import main
from streamcut.foundation.systems import peak_bytes
try:
    main()
finally:
    print(peak_bytes())
"""


@pytest.mark.thirds
@pytest.mark.parametrize(
    "options", [[], ["--solver", "ocas", "--set", "max-cuts=4"], ["--strategy", "one-vs-rest"], ["--loss", "softmax"]]
)
def test_a_model_of_all_features_is_within_the_least_memory(tmp_path, options):
    """All of its arrays, while it is made and saved: there the peak is."""
    rng, several, width = np.random.default_rng(0), "--strategy" in options or "softmax" in options, 1 << 21
    X, y = (
        sp.csr_array((np.ones(6000), rng.integers(0, 1000, 6000), np.arange(0, 6001, 3)), (2000, width)),
        rng.integers(0, 4, 2000),
    )
    X.sum_duplicates()
    with streamcut.create(tmp_path / "wide.zarr", width, memory="4GB") as made:
        made.append(X, (y if several else y > 1).astype(float))
    line = [
        sys.executable,
        "-P",
        "-c",
        _PEAK,
        "train",
        str(tmp_path / "wide.zarr"),
        "--output",
        str(tmp_path / "m.npz"),
        "--quiet",
    ]
    line += [*options, *["--task", "multiclass"] * several, "--max-passes", "2", "--memory"]
    refused = subprocess.run([*line, "1MB"], capture_output=True, text=True, timeout=120)
    least = re.search(r"at least (\d+)MB", refused.stderr)[1]
    done = subprocess.run([*line, f"{least}MB"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= int(least) * 10**6
