"""Passes on Dask: the contract of every runner, scored rows, workers that are too small or see other data."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from kit import clusters
from kit.clusters import same, started
from kit.contracts.runner import ROWS, make_store

import streamcut
from inside.kit.contracts.runner import OnRows, RunnerContract
from streamcut import CheckpointOptions, save_model, tune
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError
from streamcut.execution import cluster as on_dask
from streamcut.execution.cluster import Cluster, ClusterRunner
from streamcut.execution.cluster_connection import connect
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.execution.row_state import RowState
from streamcut.jobs import binary, columns
from streamcut.oracles.columns_passes import AscentPass
from streamcut.oracles.dual.passes import RowsDualPass
from streamcut.oracles.dual.random_order import RandomOrder


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


@contextmanager
def runner_on(client, dataset, lanes, **options):
    cluster = Cluster(client, local=False)
    cluster.prepare(dataset, Needs(41, 10, row_bytes=24), lanes)
    with ClusterRunner(cluster, dataset, lanes, row_state=RowState(ROWS), **options) as runner:
        yield runner


class TestClusterRunner(RunnerContract):
    @pytest.fixture
    def make(self, client):
        return lambda dataset, lanes, **options: runner_on(client, dataset, lanes, **options)


@dataclass(frozen=True)
class Deadly(OnRows):
    """The first process that comes to `row` dies there; rows change twice as StepPass changes them."""

    flag: str
    row: int = 1400

    def visit_chunk(self, partial, rows, chunk):
        rows["z"] += np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
        if chunk.first_row <= self.row < chunk.first_row + chunk.n_rows and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        partial.append(chunk.first_row)


def test_a_worker_that_dies_changes_nothing(client, dataset, tmp_path):
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 5)) as runner:
        runner.row_state.add("z")
        for number in (1, 2):
            seen, report = runner.run(Deadly(str(tmp_path / f"flag {number}")))
            assert seen == sorted(set(seen))
            assert report.traffic.rows == ROWS
        assert len(list(tmp_path.glob("flag*"))) == 2
        np.testing.assert_array_equal(runner.rows["z"], 2.0 * np.arange(ROWS))


def test_workers_that_see_other_data_are_refused(client, tmp_path):
    other = make_store(tmp_path / "other.zarr")
    other.manifest = replace(other.manifest, fingerprint="of other data")
    with pytest.raises(CorruptError, match=r"other\.zarr: a worker on .* sees other data"):
        streamcut.train(other, scheduler=client)


def test_a_worker_with_too_little_memory_is_refused(client, dataset):
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    with pytest.raises(MemoryBudgetError, match=r"may use 1\.40 GB, but this run needs .* GB there"):
        Cluster(client, local=False).prepare(dataset, Needs(50_000_000, 10, row_bytes=24), lanes)


def test_workers_of_our_own_are_not_profiled():
    """Under Python 3.11 that can stop them for ever."""
    with dask.config.set({"distributed.worker.profile.enabled": True}), connect("local-cluster", workers=1) as own:
        assert list(own.client.run(is_profiled).values()) == [False]


def is_profiled(dask_worker):
    return "profile" in dask_worker.periodic_callbacks


def test_when_all_workers_die_the_checkpoint_is_good(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(on_dask, "DEADLINE", 3.0)
    asked = {"solver": "ocas", "lanes": 5, "C": 0.01}
    keep = CheckpointOptions(str(tmp_path / "run"), every=0.0)
    with (
        started(tmp_path, "train.shard:60:kill", "train.shard:75:kill") as (address, _),
        pytest.raises(ClusterLostError, match="without workers for 3 s"),
    ):
        streamcut.train(dataset, scheduler=address, checkpoint=keep, **asked)
    resumed = streamcut.train(dataset, checkpoint=replace(keep, resume=True), **asked)
    assert resumed.weights.tobytes() == streamcut.train(dataset, **asked).weights.tobytes()


def test_a_worker_that_is_stopped_is_left_to_dask(dataset, tmp_path, monkeypatch):
    """SIGSTOP: its connections stay open, and it answers nothing, until the scheduler no longer waits (worker-ttl)."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "3s")
    asked = {"solver": "ocas", "lanes": 5, "C": 0.01}
    here = streamcut.train(dataset, **asked)
    with started(tmp_path, "", "") as (address, processes):

        def stop(record):
            if record.iteration == 1:
                processes["worker 0"].send_signal(signal.SIGSTOP)

        there = streamcut.train(dataset, scheduler=address, on_iteration=stop, **asked)
    assert there.weights.tobytes() == here.weights.tobytes()


# --- scored rows ----------------------------------------------------------------------------------------------------------------


FEW = {"solver": "bundle-dca", "row_cache": "20%", "sweeps": 4, "max_passes": 6, "tol": 1e-9, "tol_relative": None}
KINDS = {
    "hinge": {},
    "squared hinge, elastic net": {"loss": "squared-hinge", "l1": "5%", "lanes": 1},
    "logistic, scaled": {"loss": "logistic", "scale": "std"},
    "numbers": {"task": "regression", "loss": "epsilon-insensitive", "epsilon": 0.3},
    "least squares, no cache": {"task": "regression", "loss": "squared", "row_cache": "0", "sweeps": 0},
    "classes": {"task": "multiclass", "strategy": "one-vs-rest"},
    "classes, logistic": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
    "all classes": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """{number of classes: store}, of rows with weights in shards of uneven size, none of which ends where a batch does."""
    found = {}
    for classes in (2, 4):
        rng = np.random.default_rng(7)
        X = sp.random_array((4000, 60), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
        scores = X @ rng.standard_normal((60, classes)) + 0.5 * rng.standard_normal((4000, classes))
        path = tmp_path_factory.mktemp("scored") / f"{classes}.zarr"
        with streamcut.create(path, 60, shard_nnz=3000) as out:
            out.append(X, scores.argmax(axis=1).astype(float), weight=rng.uniform(0.5, 2.0, 4000))
        found[classes] = streamcut.open(path)
    return found


@pytest.fixture
def scored(monkeypatch):
    """Small batches, so that lanes are read from several places: the passes that the client ran, whether workers scored them."""
    for job in (binary, columns):
        monkeypatch.setattr(job, "ORDER", RandomOrder(nnz=512, batch=8, within=False))
    seen, run = [], ClusterRunner.run

    def noted(runner, work):
        if isinstance(work, RowsDualPass | AscentPass):
            seen.append(work.divided() is not None)
        return run(runner, work)

    monkeypatch.setattr(ClusterRunner, "run", noted)
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_workers_score_have_the_bits_of_threads(client, stores, tmp_path, scored, kind):
    store = stores[4 if "multiclass" in KINDS[kind].values() else 2]
    here, there = (streamcut.train(store, **{**FEW, **KINDS[kind]}, scheduler=on) for on in ("threads", client))
    assert len(scored) > 4
    assert scored == [False] + [True] * (len(scored) - 1), "only the first pass is not scored by workers"
    for name, model in (("here", here), ("there", there)):
        save_model(model, str(tmp_path / f"{name}.npz"))
    assert same(tmp_path / "here.npz", tmp_path / "there.npz")
    assert here.resources["readings"] == there.resources["readings"]
    assert [line["passes"] for line in here.history] == [line["passes"] for line in there.history]
    assert there.history[-1]["bytes_read"] < here.history[-1]["bytes_computed"], "workers keep what they have decoded"


def test_folds_and_values_of_c_are_columns_of_one_training(client, stores, scored):
    grid, options = {"C": [0.05, 1.0]}, {**FEW, "folds": 3}
    here, there = (tune(stores[2], grid, **options, scheduler=scheduler) for scheduler in ("threads", client))
    assert len(scored) > 4
    assert here.table == [{**line, "seconds": own["seconds"]} for line, own in zip(there.table, here.table, strict=True)]
    assert here.model.weights.tobytes() == there.model.weights.tobytes()
    assert here.resources["readings"] == there.resources["readings"]


def test_workers_send_no_rows_at_rest(client, stores, scored, monkeypatch):
    entries, visit = [], RowsDualPass.visit_chunk

    def counted(work, sums, rows, chunk):
        entries.append((work.first, chunk.nnz))
        return visit(work, sums, rows, chunk)

    monkeypatch.setattr(RowsDualPass, "visit_chunk", counted)
    streamcut.train(stores[2], **FEW, C=0.05, workers=1, scheduler=client)
    whole = stores[2].manifest.statistics.nnz
    assert sum(count for first, count in entries if first) == whole
    assert sum(count for first, count in entries if not first) < 0.7 * 5 * whole


def test_a_worker_that_dies_while_it_scores_changes_nothing(stores, tmp_path, scored):
    here, shards = streamcut.train(stores[2], **FEW), len(stores[2].manifest.shards)
    with started(tmp_path, f"train.shard:{shards}:kill", "") as (address, processes):
        there = streamcut.train(stores[2], **FEW, scheduler=address)
        assert processes["worker 0"].wait(timeout=20) == -signal.SIGKILL
    assert here.weights.tobytes() == there.weights.tobytes()
