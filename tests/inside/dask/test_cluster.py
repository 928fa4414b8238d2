"""Workers that see other data or have too little memory, or all die; and what they send of the rows that they score."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit import clusters
from kit.clusters import make_store

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError
from streamcut.execution import cluster as on_dask
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.jobs import columns as jobs
from streamcut.oracles.columns_passes import RandomOrder


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


def test_workers_that_see_other_data_or_have_too_little_memory_are_refused(client, tmp_path):
    dataset = make_store(tmp_path / "rows.zarr")
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    with pytest.raises(MemoryBudgetError, match=r"may use 1\.40 GB, but this run needs .* GB there"):
        on_dask.Cluster(client, local=False).prepare(dataset, Needs(50_000_000, 10, row_bytes=24), lanes)
    dataset.manifest = replace(dataset.manifest, fingerprint="of other data")
    with pytest.raises(CorruptError, match=r"rows\.zarr: a worker on .* sees other data"):
        streamcut.train(dataset, scheduler=client)


def test_when_all_workers_die_the_checkpoint_is_good(tmp_path, monkeypatch):
    monkeypatch.setattr(on_dask, "DEADLINE", 3.0)
    dataset, asked = make_store(tmp_path / "rows.zarr"), {"solver": "ocas", "lanes": 5, "C": 0.01}
    keep = CheckpointOptions(str(tmp_path / "run"), every=0.0)
    with (
        clusters.started(tmp_path, "train.shard:60:kill", "train.shard:75:kill") as (address, _),
        pytest.raises(ClusterLostError, match="without workers for 3 s"),
    ):
        streamcut.train(dataset, scheduler=address, checkpoint=keep, **asked)
    resumed = streamcut.train(dataset, checkpoint=replace(keep, resume=True), **asked)
    assert resumed.weights.tobytes() == streamcut.train(dataset, **asked).weights.tobytes()


@pytest.mark.parametrize("solver", ["bundle-dca", "ocas"])
def test_workers_send_the_entries_of_rows_that_take_steps_or_have_a_share(solver, client, tmp_path, monkeypatch):
    """Where there is one lane and rows come from several positions, as those of large data do."""
    monkeypatch.setattr(jobs, "ORDER", RandomOrder(nnz=500, batch=4))
    dataset, entries, result = make_store(tmp_path / "rows.zarr"), [], on_dask.Cluster.result

    def counted(*asked):
        rows, chunk = result(*asked)
        entries.append(chunk.nnz)
        return rows, chunk

    monkeypatch.setattr(on_dask.Cluster, "result", counted)
    asked = {"solver": solver, "C": 0.1, "lanes": 1, "tol_relative": 1e-3}
    if solver != "ocas":
        asked["row_cache"] = "10%"
    model = streamcut.train(dataset, scheduler=client, **asked)
    assert model.weights.tobytes() == streamcut.train(dataset, **asked).weights.tobytes()
    assert sum(entries) < 0.5 * model.history[-1]["passes"] * dataset.manifest.statistics.nnz
