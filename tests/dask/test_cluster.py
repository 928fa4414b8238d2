"""Trainings on Dask: the bits of threads, whoever dies. One cluster serves all tests but those whose cluster must die."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from dataclasses import replace

import distributed
import psutil
import pytest
from kit import clusters
from kit.clusters import make_store, started

import streamcut
from streamcut import errors, load_model, save_model
from streamcut.errors import ClusterLostError, ExitCode


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


# --- a cluster that the user started, and the command line ----------------------------------------------------------------------


def command(dataset, model, *options, how=("--solver", "ocas", "--set", "lanes=5", "--C", 0.01)):
    words = ["train", dataset.path, "--output", model, "--quiet", *how, *options]
    return [sys.executable, "-P", "-m", "streamcut", *map(str, words)]


def train(*arguments, **how):
    return subprocess.run(command(*arguments, **how), capture_output=True, text=True, timeout=500)


def same(left, right):
    ours, theirs = load_model(left), load_model(right)
    return ours.weights.tobytes() == theirs.weights.tobytes() and ours.certificate == theirs.certificate


@pytest.fixture(scope="module")
def on_threads(dataset, tmp_path_factory):
    model = tmp_path_factory.mktemp("threads") / "m.npz"
    save_model(streamcut.train(dataset, solver="ocas", lanes=5, C=0.01), str(model))
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
            _, shown = process.communicate(timeout=90)
        assert process.returncode == ExitCode.CLUSTER_LOST, shown
        assert address in shown
        assert "--resume" in shown


def test_a_shard_that_kills_every_worker(dataset, tmp_path, monkeypatch):
    """It is named, and the workers that are left need not die of it: Dask says how many may."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    with started(tmp_path, *["train.shard.2:1:kill"] * 3) as (address, processes):
        done = train(dataset, tmp_path / "m.npz", "--scheduler", address, how=())
        assert done.returncode == ExitCode.CLUSTER_LOST, done.stderr
        assert "2 workers died one after the other while processing shard 000002" in done.stderr
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
        options = {"scheduler": scheduler, "solver": "ocas", "workers": 2, "lanes": 5, "C": 0.01}
        watched = {"on_plan": plans.append, "on_iteration": lambda _: opened.update(listening() - before)}
        save_model(streamcut.train(dataset, **watched, **options), str(tmp_path / "m.npz"))
        assert {address for address, _ in opened} == {"127.0.0.1"}
        assert same(tmp_path / "m.npz", on_threads)
        assert len(plans[0].pinned) == len(dataset.manifest.shards)
        (tmp_path / "m.npz").unlink()
    assert list(tmp_path.iterdir()) == []
    shown = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))  # on the dashboard
    assert "ScorePass" in shown


def test_a_disk_that_is_full_at_a_worker_is_told_in_a_sentence(dataset, tmp_path):
    """A limit on the size of files stands for it, which the processes of the cluster inherit."""
    options = "--scheduler", "local-cluster", "--workers", 1
    line = " ".join(map(shlex.quote, map(str, command(dataset, tmp_path / "m.npz", *options))))
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; {line}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == ExitCode.DISK_FULL, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.npz").exists()


def test_connections_are_dasks_own_and_may_be_encrypted(dataset, tmp_path, monkeypatch):
    """The command line takes certificates from Dask's settings, and without them says which are needed."""
    security = distributed.Security.temporary()
    names = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}
    for name, attribute in names.items():
        (tmp_path / name).write_text(getattr(security, attribute))
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0", "security": security}
    with distributed.LocalCluster(protocol="tls", **options) as server:
        asked = ["--scheduler", server.scheduler_address]
        done = train(dataset, tmp_path / "m.npz", *asked)
        assert (done.returncode, "comm.tls.ca-file" in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
        for name in names:
            variable = f"DASK_DISTRIBUTED__COMM__TLS__{name.upper().replace('.', '__').replace('-', '_')}"
            monkeypatch.setenv(variable, str(tmp_path / name))
        done = train(dataset, tmp_path / "m.npz", *asked)
    assert done.returncode == 0, done.stderr


def test_a_cluster_shrinks_and_grows_and_a_worker_dies(dataset, tmp_path):
    asked = {"solver": "bundle-dca", "row_cache": "30%", "max_passes": 5, "tol": 1e-9, "tol_relative": None}
    here = streamcut.train(dataset, **asked)
    with (
        clusters.growing(tmp_path, tmp_path, ["", "train.shard:60:kill", ""]) as (address, processes, start),
        distributed.Client(address, set_as_default=False) as client,
    ):

        def change(record):
            if record.iteration == 1:
                client.retire_workers([next(iter(client.scheduler_info(n_workers=-1)["workers"]))])
            elif record.iteration == 2:
                start(3, "")
                processes["worker 1"].kill()

        there = streamcut.train(dataset, scheduler=client, on_iteration=change, **asked)
    assert there.weights.tobytes() == here.weights.tobytes()
    assert there.certificate == here.certificate


def test_a_cluster_goes_on_where_threads_stopped_and_the_other_way_round(client, dataset, tmp_path):
    asked = {"solver": "bundle-dca", "row_cache": "30%", "tol": 1e-9, "tol_relative": None}
    whole = streamcut.train(dataset, max_passes=6, **asked)
    for name, first, second in (("a", client, "threads"), ("b", "threads", client)):
        keep = streamcut.CheckpointOptions(str(tmp_path / name), every=0.0)
        streamcut.train(dataset, max_passes=3, checkpoint=keep, scheduler=first, **asked)
        resumed = streamcut.train(dataset, max_passes=6, checkpoint=replace(keep, resume=True), scheduler=second, **asked)
        assert resumed.weights.tobytes() == whole.weights.tobytes()


def test_rows_in_memory_and_schedulers_that_do_not_answer_are_refused(client, dataset):
    with pytest.raises(errors.UsageError, match="streamcut convert"):
        streamcut.train(streamcut.rows([[1.0], [2.0]], [0, 1]), scheduler=client)
    with pytest.raises(ClusterLostError, match="no Dask scheduler"):
        streamcut.train(dataset, scheduler="nonsense://127.0.0.1:1")


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


def test_folds_and_values_of_c_are_columns_of_one_training(client, dataset):
    grid = {"C": [0.05, 1.0]}
    options = {"solver": "bundle-dca", "row_cache": "20%", "max_passes": 6, "tol": 1e-9, "tol_relative": None, "folds": 3}
    here, there = (streamcut.tune(dataset, grid, **options, scheduler=scheduler) for scheduler in ("threads", client))
    assert here.table == [{**line, "seconds": own["seconds"]} for line, own in zip(there.table, here.table, strict=True)]
    assert here.model.weights.tobytes() == there.model.weights.tobytes()
    assert here.resources["readings"] == there.resources["readings"]


def test_a_cluster_whose_processes_end_while_they_start_is_lost_and_no_script_is_blamed(dataset, tmp_path, run, monkeypatch):
    def ended(**options):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", ended)
    local = ("--scheduler", "local-cluster", "--workers", "1")
    code, _, err = run("train", dataset.path, "-o", tmp_path / "m.npz", *local)
    assert code == 11
    assert "Nanny failed to start" in err
    assert "__main__" not in err


SCRIPT = """
import sys
import streamcut
streamcut.train(sys.argv[1], scheduler="local-cluster", workers=1, max_passes=1)
"""


def test_a_script_without_the_guard_is_told_of_it(dataset, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "script.py"), str(dataset.path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("streamcut.errors.UsageError: scheduler: local-cluster: its processes did not start")
    assert 'put the script\'s code below if __name__ == "__main__":' in last
