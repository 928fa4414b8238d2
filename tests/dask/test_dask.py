"""Passes on Dask: the bits of threads, whoever dies. One cluster serves all tests but those whose cluster must die."""

from __future__ import annotations

import pickle
import re
import shlex
import signal
import subprocess

import kit.shared.dask
import psutil
import pytest
from distributed.core import error_message
from kit import clusters
from kit.clusters import same, started

import streamcut
from streamcut import errors, save_model
from streamcut.errors import ClusterLostError, ExitCode

dataset = kit.shared.dask.dataset
client = kit.shared.dask.client


# --- a cluster that the user started, and the command line ----------------------------------------------------------------------


OCAS = "--solver", "ocas", "--set", "lanes=5", "--C", 0.01


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
        done = train(dataset, tmp_path / "m.npz", *keep, "--scheduler", address, "--set", "deadline=3s")
        assert done.returncode == ExitCode.CLUSTER_LOST, done.stderr
        assert "without workers for 3 s" in done.stderr
    assert not (tmp_path / "m.npz").exists()
    done = train(dataset, tmp_path / "m.npz", *keep, "--resume")
    assert done.returncode == 0, done.stderr
    assert same(tmp_path / "m.npz", on_threads)


def test_39_a_shard_that_kills_every_worker(dataset, tmp_path):
    """It is named, and the workers that are left need not die of it."""
    with started(tmp_path, *["train.shard.2:1:kill"] * 3) as (address, processes):
        done = train(dataset, tmp_path / "m.npz", "--scheduler", address, "--set", "deadline=20s")
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


def test_nobody_answers(dataset, tmp_path):
    with pytest.raises(ClusterLostError, match="no Dask scheduler"):
        streamcut.train(dataset, scheduler="nonsense://127.0.0.1:1")


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
