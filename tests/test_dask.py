"""Passes on Dask: the bits of threads, whoever dies. One cluster serves the module; its own processes only where they must die."""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import distributed
import numpy as np
import pytest
from contracts.runner import ROWS, OnRows, RunnerContract, make_store

from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError, UsageError
from streamcut.execution.dask_runner import Cluster, DaskRunner, Needs
from streamcut.execution.lanes import plan_lanes
from streamcut.io.memory import MemoryDataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    options = {"dashboard_address": None, "silence_logs": logging.CRITICAL, "memory_limit": "2GB"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as server,
        distributed.Client(server, set_as_default=False) as client,
    ):
        yield client


def nothing(manifest):
    """Kernels are compiled when they are needed."""


def runner_on(client, dataset, lanes, scratch, *, deadline=20.0, **options):
    cluster = Cluster(client, local=False, deadline=deadline)
    cluster.prepare(dataset, scratch, nothing)
    cluster.plan(Needs(dataset.manifest, lanes, 41, 10, 24), budget=10**10)
    return DaskRunner(cluster, dataset, lanes, scratch=scratch, **options)


class TestDaskRunner(RunnerContract):
    @pytest.fixture
    def make(self, client, tmp_path):
        @contextmanager
        def make(dataset, lanes, **options):
            with runner_on(client, dataset, lanes, tmp_path, **options) as runner:
                yield runner
            assert list(tmp_path.iterdir()) == []

        return make


@dataclass(frozen=True)
class Deadly(OnRows):
    """The first process that comes to `row` dies there; rows change twice as StepPass changes them."""

    flag: str
    row: int = 1400
    needs_data: ClassVar[bool] = True

    def visit(self, partial, rows, chunk):
        rows["z"] += np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
        if chunk.first_row <= self.row < chunk.first_row + chunk.n_rows and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        partial.append(chunk.first_row)


def test_a_worker_that_dies_changes_nothing(client, dataset, tmp_path):
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 5), tmp_path) as runner:
        runner.row_state.add("z")
        for number in (1, 2):
            seen, report = runner.run(Deadly(str(tmp_path / f"flag {number}")))
            assert seen == sorted(set(seen))
            assert report.traffic.rows == ROWS
        assert len(list(tmp_path.glob("flag*"))) == 2
        np.testing.assert_array_equal(runner.rows["z"], 2.0 * np.arange(ROWS))


def test_a_pass_costs_little_beside_its_work(client, dataset, tmp_path):
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 16), tmp_path) as runner:
        runner.row_state.add("z")
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            runner.run(Deadly(str(tmp_path), row=-1))
            seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.2


def test_rows_in_memory_are_refused(client, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    with pytest.raises(UsageError, match="streamcut convert"):
        cluster.prepare(MemoryDataset(np.eye(2), [0, 1]), tmp_path, nothing)


def test_workers_that_see_other_data_are_refused(client, dataset, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    other = make_store(tmp_path / "other.zarr")
    other.manifest = replace(other.manifest, fingerprint="of other data")
    with pytest.raises(CorruptError, match=r"other\.zarr: a worker on .* sees other data"):
        cluster.prepare(other, tmp_path, nothing)


def test_a_worker_with_too_little_memory_is_refused(client, dataset, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    cluster.prepare(dataset, tmp_path, nothing)
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    with pytest.raises(MemoryBudgetError, match=r"may use 1\.40 GB, but this run needs at least \d{4,}MB there"):
        cluster.plan(Needs(dataset.manifest, lanes, 50_000_000, 10, 24), budget=10**12)
