"""Passes on Dask: the bits of threads, whoever dies. One cluster serves all tests but those whose cluster must die."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import dask
import kit.shared.dask
import numpy as np
import pytest
from kit.contracts.runner import ROWS, make_store

import streamcut
from inside.kit.contracts.runner import OnRows, Order, RunnerContract
from inside.kit.dask import runner_on
from streamcut.errors import CorruptError, MemoryBudgetError, UsageError
from streamcut.execution.dask.cluster import connect
from streamcut.execution.dask.logs import is_news, says_something
from streamcut.execution.dask.plan import ClusterNeeds
from streamcut.execution.dask.runner import Cluster
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs

dataset = kit.shared.dask.dataset
client = kit.shared.dask.client


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

    def visit_chunk(self, partial, rows, chunk):
        rows["z"] += np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
        if chunk.first_row <= self.row < chunk.first_row + chunk.n_rows and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        partial.append(chunk.first_row)


@dataclass(frozen=True)
class Impure(Order):
    """A pass that changes more than its sum and its rows."""

    pure: ClassVar[bool] = False


def test_a_pass_that_is_not_pure_is_refused(client, dataset, tmp_path):
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 2), tmp_path) as runner:
        runner.row_state.add("z")
        with pytest.raises(ValueError, match="Impure is not pure: it runs on threads only"):
            runner.run(Impure())


def test_a_worker_that_dies_changes_nothing(client, dataset, tmp_path):
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 5), tmp_path) as runner:
        runner.row_state.add("z")
        for number in (1, 2):
            seen, report = runner.run(Deadly(str(tmp_path / f"flag {number}")))
            assert seen == sorted(set(seen))
            assert report.traffic.rows == ROWS
        assert len(list(tmp_path.glob("flag*"))) == 2
        np.testing.assert_array_equal(runner.rows["z"], 2.0 * np.arange(ROWS))


def test_what_killed_clients_left_is_removed(client, dataset, tmp_path):
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    (tmp_path / "streamcut-rows-old").mkdir()
    (tmp_path / "streamcut-rows-old" / "z.0.1").touch()
    with runner_on(client, dataset, lanes, tmp_path) as first:
        with runner_on(client, dataset, lanes, tmp_path):
            assert len(list(tmp_path.iterdir())) == 2
        first.row_state.add("z")
        first.run(Order())


def test_rows_in_memory_are_refused(client, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    with pytest.raises(UsageError, match="streamcut convert"):
        cluster.prepare(streamcut.rows(np.eye(2), [0, 1]), tmp_path)


def test_workers_that_see_other_data_are_refused(client, dataset, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    other = make_store(tmp_path / "other.zarr")
    other.manifest = replace(other.manifest, fingerprint="of other data")
    with pytest.raises(CorruptError, match=r"other\.zarr: a worker on .* sees other data"):
        cluster.prepare(other, tmp_path)


def test_a_worker_with_too_little_memory_is_refused(client, dataset, tmp_path):
    cluster = Cluster(client, local=False, deadline=1.0)
    cluster.prepare(dataset, tmp_path)
    lanes = plan_lanes(dataset.manifest.statistics, 2)
    with pytest.raises(MemoryBudgetError, match=r"may use 1\.40 GB, but this run needs at least \d{4,}MB there"):
        cluster.plan(ClusterNeeds(Needs(50_000_000, 10, row_bytes=24), dataset.manifest, lanes), budget=10**12)


def test_workers_of_our_own_are_not_profiled():
    """Under Python 3.11 that can stop them for ever."""
    with dask.config.set({"distributed.worker.profile.enabled": True}), connect("local-cluster", workers=1, deadline=20.0) as own:
        assert list(own.ask(list(own.running()), is_profiled).values()) == [False]


def is_profiled(dask_worker):
    return "profile" in dask_worker.periodic_callbacks


async def is_late(which, until, dask_worker):
    while dask_worker.address == which and not until.exists():
        await asyncio.sleep(0.01)
    return dask_worker.address


def test_who_does_not_answer_is_waited_for_until_it_counts_as_gone(client, dataset, tmp_path, monkeypatch):
    cluster = Cluster(client, local=False, deadline=20.0)
    cluster.prepare(dataset, tmp_path)
    silent, other = cluster.workers
    monkeypatch.setattr(cluster, "running", lambda: {other})
    released = tmp_path / "released"
    assert cluster.ask([silent, other], is_late, silent, released) == {other: other}
    monkeypatch.undo()
    released.touch()
    assert cluster.ask([silent, other], is_late, None, released) == {silent: silent, other: other}


def test_what_dask_leaves_behind_says_nothing(caplog):
    from distributed.client import AllExit

    logger = logging.getLogger("asyncio")
    logger.addFilter(says_something)
    for error in (AllExit(), ValueError("told")):
        logger.error("Task exception was never retrieved", exc_info=error)
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


def test_errors_that_are_not_ours_are_logged():
    record = logging.LogRecord("distributed.worker", logging.ERROR, "", 0, "Compute Failed\nException: %r", ("",), None)
    for said, news in (("ValueError('x')", True), ("DiskFullError('/a: File too large')", False), ("CorruptError('x')", False)):
        record.args = (said,)
        assert is_news(record) == news
