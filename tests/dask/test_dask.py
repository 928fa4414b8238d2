"""Passes on Dask: the bits of threads, whoever dies. One cluster serves all tests but those whose cluster must die."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import re
import shlex
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import dask
import numpy as np
import psutil
import pytest
from distributed.core import error_message
from kit import clusters
from kit.clusters import same, started
from kit.contracts.runner import ROWS, OnRows, Order, RunnerContract, make_store
from kit.dask import runner_on

import streamcut
from streamcut import errors
from streamcut.errors import ClusterLostError, CorruptError, ExitCode, MemoryBudgetError, UsageError
from streamcut.execution.dask.cluster import connect
from streamcut.execution.dask.logs import is_news, says_something
from streamcut.execution.dask.plan import ClusterNeeds
from streamcut.execution.dask.runner import Cluster
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.io.memory import MemoryDataset
from streamcut.models.files import save_model


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


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
        cluster.prepare(MemoryDataset(np.eye(2), [0, 1]), tmp_path)


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


# --- a cluster that the user started, and the command line ----------------------------------------------------------------------


OCAS = "--solver", "ocas", "--lanes", 5, "--C", 0.01


def command(dataset, model, *options):
    return clusters.command(dataset, model, *OCAS, *options)


def train(dataset, model, *options):
    return clusters.train(dataset, model, *OCAS, *options)


@pytest.fixture(scope="module")
def on_threads(dataset, tmp_path_factory):
    model = tmp_path_factory.mktemp("threads") / "m.npz"
    done = train(dataset, model)
    assert done.returncode == 0, done.stderr
    return model


def test_a_cluster_of_ones_own_has_a_slow_worker_loses_the_other_then_its_scheduler(dataset, on_threads, tmp_path):
    slow = ",".join(f"train.shard:{k}:sleep=0.1" for k in range(1, 25))
    with started(tmp_path, slow, "train.shard:50:kill") as (address, processes):
        done = train(dataset, tmp_path / "m.npz", "--scheduler", address)
        assert done.returncode == 0, done.stderr
        assert same(tmp_path / "m.npz", on_threads)
        assert processes["worker 1"].wait(5) == -signal.SIGKILL

        endless = ["--tol", 1e-14, "--tol-relative", 0, "--json", "--force", "--scheduler", address]
        with subprocess.Popen(
            command(dataset, tmp_path / "m.npz", *endless), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            while '"iteration"' not in process.stdout.readline():
                assert process.poll() is None, process.stderr.read()
            processes["scheduler"].kill()
            _, told = process.communicate(timeout=90)
        assert process.returncode == ExitCode.CLUSTER_LOST, told
        assert address in told
        assert "--resume" in told


def test_when_all_workers_die_the_checkpoint_is_good(dataset, on_threads, tmp_path):
    keep = ["--checkpoint", tmp_path / "run", "--checkpoint-every", "0s"]
    with started(tmp_path, "train.shard:60:kill", "train.shard:75:kill") as (address, _):
        done = train(dataset, tmp_path / "m.npz", *keep, "--scheduler", address, "--deadline", "3s")
        assert done.returncode == ExitCode.CLUSTER_LOST, done.stderr
        assert "without workers for 3 s" in done.stderr
    assert not (tmp_path / "m.npz").exists()
    done = train(dataset, tmp_path / "m.npz", *keep, "--resume")
    assert done.returncode == 0, done.stderr
    assert same(tmp_path / "m.npz", on_threads)


def test_39_a_shard_that_kills_every_worker(dataset, tmp_path):
    """It is named, and the workers that are left need not die of it."""
    with started(tmp_path, *["train.shard.2:1:kill"] * 3) as (address, processes):
        done = train(dataset, tmp_path / "m.npz", "--scheduler", address, "--deadline", "20s")
        assert done.returncode == ExitCode.CLUSTER_LOST, done.stderr
        assert re.search(r"workers died one after the other while processing the shards .*000002", done.stderr), done.stderr
        assert "Traceback" not in done.stderr
        assert [process.poll() for name, process in processes.items() if name != "scheduler"].count(None) == 1
    assert not (tmp_path / "m.npz").exists()


def listening():
    """(address, port) of what this process and its children listen at."""
    me = psutil.Process()
    found = [each for process in (me, *me.children(recursive=True)) for each in process.net_connections("tcp")]
    return {tuple(each.laddr) for each in found if each.status == psutil.CONN_LISTEN}


def test_a_local_cluster_and_a_client_in_python(client, dataset, on_threads, tmp_path):
    """What listens for the local one does so on this machine alone, its dashboard too."""
    before, opened = listening(), set()
    for scheduler in ("local-cluster", client):
        plans = []
        options = {"scheduler": scheduler, "solver": "ocas", "workers": 2, "lanes": 5, "C": 0.01, "scratch": str(tmp_path)}
        watched = {"on_plan": plans.append, "on_iteration": lambda _: opened.update(listening() - before)}
        save_model(streamcut.train(dataset, **watched, **options), str(tmp_path / "m.npz"))
        assert {address for address, _ in opened} == {"127.0.0.1"}
        assert same(tmp_path / "m.npz", on_threads)
        assert len(plans[0].pinned) == len(dataset.manifest.shards)
        (tmp_path / "m.npz").unlink()
    assert list(tmp_path.iterdir()) == []
    assert {"ScorePass", "StepPass"} <= client.run_on_scheduler(shown_names)


def shown_names(dask_scheduler):
    """Of tasks, on the dashboard."""
    return set(dask_scheduler.task_prefixes)


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


def test_nobody_answers(dataset, tmp_path):
    with pytest.raises(ClusterLostError, match="no Dask scheduler"):
        streamcut.train(dataset, scheduler="nonsense://127.0.0.1:1")


def test_what_dask_leaves_behind_says_nothing(caplog):
    from distributed.client import AllExit

    logger = logging.getLogger("asyncio")
    logger.addFilter(says_something)
    for error in (AllExit(), ValueError("told")):
        logger.error("Task exception was never retrieved", exc_info=error)
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


def test_a_disk_that_is_full_at_a_worker_is_told_in_a_sentence(dataset, tmp_path):
    """A limit on the size of files stands for it, which the processes of the cluster inherit."""
    line = " ".join(
        map(shlex.quote, map(str, command(dataset, tmp_path / "m.npz", "--scheduler", "local-cluster", "--workers", 1)))
    )
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; {line}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == ExitCode.DISK_FULL, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("kind", sorted({errors.StreamcutError, *errors.StreamcutError.__subclasses__()}, key=repr))
def test_errors_of_workers_arrive(kind):
    """Dask sends them with their tracebacks, by tblib."""
    try:
        raise kind("s3://name:secret@host: wrong")
    except kind as error:
        sent = error_message(error)["exception"]
    arrived = pickle.loads(sent.data)
    assert (type(arrived), str(arrived)) == (kind, str(kind("s3://name:secret@host: wrong")))


def test_errors_that_are_not_ours_are_logged():
    record = logging.LogRecord("distributed.worker", logging.ERROR, "", 0, "Compute Failed\nException: %r", ("",), None)
    for said, news in (("ValueError('x')", True), ("DiskFullError('/a: File too large')", False), ("CorruptError('x')", False)):
        record.args = (said,)
        assert is_news(record) == news
