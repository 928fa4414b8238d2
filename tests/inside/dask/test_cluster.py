"""Workers that are too small or see other data, or die while they score rows, or all die."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit import clusters
from kit.clusters import started
from kit.many_shards import make_store

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError
from streamcut.execution import cluster as on_dask
from streamcut.execution.cluster import Cluster, ClusterRunner
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.jobs import columns
from streamcut.oracles.columns_passes import AscentPass
from streamcut.oracles.random_order import RandomOrder


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


def test_workers_that_see_other_data_are_refused(client, tmp_path):
    other = make_store(tmp_path / "other.zarr")
    other.manifest = replace(other.manifest, fingerprint="of other data")
    with pytest.raises(CorruptError, match=r"other\.zarr: a worker on .* sees other data"):
        streamcut.train(other, scheduler=client)


def test_a_worker_with_too_little_memory_is_refused(client, dataset):
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    with pytest.raises(MemoryBudgetError, match=r"may use 1\.40 GB, but this run needs .* GB there"):
        Cluster(client, local=False).prepare(dataset, Needs(50_000_000, 10, row_bytes=24), lanes)


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


# --- scored rows ----------------------------------------------------------------------------------------------------------------


FEW = {"solver": "bundle-dca", "row_cache": "20%", "sweeps": 4, "max_passes": 6, "tol": 1e-9, "tol_relative": None}


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
    monkeypatch.setattr(columns, "ORDER", RandomOrder(nnz=512, batch=8))
    seen, run = [], ClusterRunner.run

    def noted(runner, work):
        if isinstance(work, AscentPass):
            seen.append(work.divided() is not None)
        return run(runner, work)

    monkeypatch.setattr(ClusterRunner, "run", noted)
    return seen


def test_a_worker_that_dies_while_it_scores_changes_nothing(stores, tmp_path, scored):
    here, shards = streamcut.train(stores[2], **FEW), len(stores[2].manifest.shards)
    with started(tmp_path, f"train.shard:{shards}:kill", "") as (address, processes):
        there = streamcut.train(stores[2], **FEW, scheduler=address)
        assert processes["worker 0"].wait(timeout=20) == -signal.SIGKILL
    assert here.weights.tobytes() == there.weights.tobytes()
