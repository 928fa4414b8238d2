"""One lane on a cluster: workers score, the client takes the steps, and the bits are those of one machine, whoever dies."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from kit.clusters import same, started, two_workers

import streamcut
from streamcut import save_model, tune
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError, UsageError
from streamcut.execution.dask.climbing import ClimbingRunner
from streamcut.jobs import binary, columns
from streamcut.oracles.columns_passes import AscentPass
from streamcut.oracles.dual.passes import RowsDualPass
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.training import CheckpointOptions

FEW = {"solver": "bundle-dca", "row_cache": "20%", "sweeps": 4, "max_passes": 6, "tol": 1e-9, "tol_relative": None}
KINDS = {
    "hinge": {},
    "squared hinge, elastic net": {"loss": "squared-hinge", "l1": "5%", "lanes": 1},
    "logistic, scaled": {"loss": "logistic", "scale": "std"},
    "numbers": {"task": "regression", "loss": "epsilon-insensitive", "epsilon": 0.3},
    "least squares, no cache": {"task": "regression", "loss": "squared", "row_cache": "0", "sweeps": 0},
}


def stored(path, classes):
    """Rows with weights in shards of uneven size, none of which ends where a batch does."""
    rng = np.random.default_rng(7)
    X = sp.random_array((4000, 60), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = (X @ rng.standard_normal((60, classes)) + 0.5 * rng.standard_normal((4000, classes))).argmax(axis=1).astype(float)
    with streamcut.create(path, 60, shard_nnz=3000) as out:
        out.append(X, y, weight=rng.uniform(0.5, 2.0, 4000))
    return streamcut.open(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("climbing") / "rows.zarr", 2)


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Twelve of them, so that lanes are read from several places."""
    for job in (binary, columns):
        monkeypatch.setattr(job, "ORDER", RandomOrder(nnz=512, batch=8, within=False))


@pytest.fixture
def scored(monkeypatch):
    """The passes that the client ran, whether workers had scored them."""
    seen, run = [], ClimbingRunner.run

    def noted(runner, work):
        if isinstance(work, RowsDualPass | AscentPass):
            seen.append(work.divided() is not None)
        return run(runner, work)

    monkeypatch.setattr(ClimbingRunner, "run", noted)
    return seen


@pytest.mark.thirds
@pytest.mark.parametrize("kind", KINDS)
def test_bits_are_those_of_threads(client, store, tmp_path, scored, kind):
    here, there = (
        streamcut.train(store, **{**FEW, **KINDS[kind]}, scheduler=scheduler, scratch=str(tmp_path))
        for scheduler in ("threads", client)
    )
    assert len(scored) > 4
    assert scored == [False] + [True] * (len(scored) - 1), "only the first pass is not scored by workers"
    for name, model in (("here", here), ("there", there)):
        save_model(model, str(tmp_path / f"{name}.npz"))
    assert same(tmp_path / "here.npz", tmp_path / "there.npz")
    assert here.resources["readings"] == there.resources["readings"]
    assert [line["passes"] for line in here.history] == [line["passes"] for line in there.history]


@pytest.mark.thirds
@pytest.mark.parametrize("kind", [{}, {"loss": "squared-hinge", "l1": "5%"}, {"loss": "logistic"}])
def test_one_vs_rest_has_the_bits_of_threads(client, tmp_path, scored, kind):
    store = stored(tmp_path / "classes.zarr", 4)
    options = {**FEW, **kind, "task": "multiclass", "strategy": "one-vs-rest", "scratch": str(tmp_path)}
    here, there = (streamcut.train(store, **options, scheduler=scheduler) for scheduler in ("threads", client))
    assert len(scored) > 4
    assert scored.count(False) <= 2
    for name, model in (("here", here), ("there", there)):
        save_model(model, str(tmp_path / f"{name}.npz"))
    assert same(tmp_path / "here.npz", tmp_path / "there.npz")


def test_folds_and_values_of_c_are_columns_of_one_training(client, store, tmp_path, scored):
    grid, options = {"C": [0.05, 1.0]}, {**FEW, "folds": 3, "scratch": str(tmp_path)}
    here, there = (tune(store, grid, **options, scheduler=scheduler) for scheduler in ("threads", client))
    assert len(scored) > 4
    assert here.table == [{**line, "seconds": own["seconds"]} for line, own in zip(there.table, here.table, strict=True)]
    assert here.model.weights.tobytes() == there.model.weights.tobytes()
    assert here.resources["readings"] == there.resources["readings"]


def test_sequences_have_the_bits_of_threads_by_cutting_planes(client, tmp_path):
    rng, path = np.random.default_rng(3), tmp_path / "chains.zarr"
    X = sp.random_array((900, 20), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    qid, y = np.repeat(np.arange(90), 10), (X @ rng.standard_normal((20, 3))).argmax(axis=1).astype(float)
    with streamcut.create(path, 20, shard_nnz=800) as out:
        out.append(X, y, qid=qid)
    options = {"task": "sequence", "solver": "ocas", "lanes": 4, "max_passes": 8, "scratch": str(tmp_path)}
    here, there = (streamcut.train(path, **options, scheduler=scheduler) for scheduler in ("threads", client))
    assert here.weights.tobytes() == there.weights.tobytes()
    assert here.transitions.tobytes() == there.transitions.tobytes()
    assert here.certificate == there.certificate
    with pytest.raises(UsageError, match="solver ocas runs there, too"):
        streamcut.train(path, task="sequence", scheduler=client, scratch=str(tmp_path))


def test_workers_send_no_rows_at_rest(client, store, tmp_path, monkeypatch):
    entries, prepare = [], RowsDualPass.prepare

    def counted(work, sums, rows, chunk):
        entries.append((work.first, chunk.nnz))
        return prepare(work, sums, rows, chunk)

    monkeypatch.setattr(RowsDualPass, "prepare", counted)
    streamcut.train(store, **FEW, C=0.05, scheduler=client, scratch=str(tmp_path))
    whole = store.manifest.statistics.nnz
    assert sum(count for first, count in entries if first) == whole
    assert sum(count for first, count in entries if not first) < 0.7 * 5 * whole


def test_a_checkpoint_of_a_cluster_goes_on_on_threads(client, store, tmp_path):
    whole = streamcut.train(store, **FEW)
    folder, few = str(tmp_path / "run"), {**FEW, "max_passes": 3}
    streamcut.train(store, **few, scheduler=client, scratch=str(tmp_path), checkpoint=folder)
    resumed = streamcut.train(store, **FEW, checkpoint=CheckpointOptions(folder, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()


def test_a_worker_that_dies_while_it_scores_changes_nothing(store, tmp_path):
    here = streamcut.train(store, **FEW)
    shards = len(store.manifest.shards)
    with started(tmp_path, f"train.shard:{shards}:kill", "") as (address, processes):
        there = streamcut.train(store, **FEW, scheduler=address, scratch=str(tmp_path), silence=20.0)
        assert processes["worker 0"].wait(timeout=20) != 0
    assert here.weights.tobytes() == there.weights.tobytes()


def test_a_shard_that_kills_every_worker(store, tmp_path):
    with (
        started(tmp_path, *["train.shard.2:1:kill"] * 3) as (address, _),
        pytest.raises(ClusterLostError, match="2 workers died one after the other while processing shard 000002"),
    ):
        streamcut.train(store, **FEW, scheduler=address, scratch=str(tmp_path), silence=20.0)


def test_a_damaged_shard_is_named(client, store, tmp_path):
    copied = Path(shutil.copytree(store.path, tmp_path / "rows.zarr"))
    found = max((p for p in copied.rglob("*") if p.is_file() and "000001" in str(p)), key=lambda p: p.stat().st_size)
    damaged = bytearray(found.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    found.write_bytes(damaged)
    with pytest.raises(CorruptError, match="000001"):
        streamcut.train(str(copied), **FEW, scheduler=client, scratch=str(tmp_path))


def test_the_minimum_that_a_refusal_names_is_enough(store, tmp_path):
    options = {**FEW, "scheduler": "local-cluster", "workers": 1, "scratch": str(tmp_path)}
    with pytest.raises(MemoryBudgetError) as refused:
        streamcut.train(store, **options, memory="50MB")
    [least] = re.findall(r"at least (\d+MB)", str(refused.value))
    model = streamcut.train(store, **options, memory=least)
    assert model.certificate.primal >= streamcut.train(store, **FEW).certificate.lower_bound  # fewer rows in memory: other steps
    assert model.resources["planned"] <= model.resources["budget"]
