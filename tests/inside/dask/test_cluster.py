"""Workers that are too small or see other data, or die, or all die; and what they send of the rows that they score."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit import clusters
from kit.clusters import started
from kit.many_shards import make_store

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError
from streamcut.execution import cluster as on_dask
from streamcut.execution.cluster import Cluster
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.jobs import columns as jobs
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


@pytest.mark.parametrize("solver", ["bundle-dca", "ocas"])
def test_workers_send_the_entries_of_rows_that_take_steps_or_have_a_share(solver, client, dataset, monkeypatch):
    """Where there is one lane and rows come from several places, as those of large data do."""
    monkeypatch.setattr(jobs, "ORDER", RandomOrder(nnz=500, batch=4))
    entries, result = [], Cluster.result

    def counted(*asked):
        rows, chunk = result(*asked)
        entries.append(chunk.nnz)
        return rows, chunk

    monkeypatch.setattr(Cluster, "result", counted)
    asked = {"solver": solver, "C": 0.1, "lanes": 1, "tol_relative": 1e-4}
    if solver != "ocas":
        asked["row_cache"] = "10%"
    model = streamcut.train(dataset, scheduler=client, **asked)
    assert model.weights.tobytes() == streamcut.train(dataset, **asked).weights.tobytes()
    assert sum(entries) < 0.5 * model.history[-1]["passes"] * dataset.manifest.statistics.nnz
