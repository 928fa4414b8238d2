"""Row state that workers own: no folder is common to all, and the bits are those of threads whoever dies."""

from __future__ import annotations

import signal
from dataclasses import replace

import distributed
import kit.shared.dask_owned
import psutil
import pytest
from kit.clusters import same, train
from kit.contracts.runner import make_store
from kit.dask_owned import ASKED, FEW, apart

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import ClusterLostError

dataset = kit.shared.dask_owned.dataset
cluster = kit.shared.dask_owned.cluster


def test_one_class_is_that_of_threads(cluster, tmp_path):
    """Order statistics of scores that no process has together."""
    client, scratch = cluster
    dataset = make_store(tmp_path / "rows.zarr", one_class=True)
    asked = {"task": "one-class", "nu": 0.4, "lanes": 5, "max_passes": 5, "tol": 1e-9}
    here, there = (streamcut.train(dataset, **asked, **on) for on in ({}, {"scheduler": client, "scratch": str(scratch)}))
    assert here.weights.any()
    assert (here.weights.tolist(), here.intercept) == (there.weights.tolist(), there.intercept)
    assert here.certificate == there.certificate


def test_a_worker_dies_in_a_pass_and_another_in_a_sweep(dataset, tmp_path):
    here = train(dataset, tmp_path / "here.npz", *ASKED)
    assert here.returncode == 0, here.stderr
    with apart(tmp_path, "none:1:kill", "train.shard:20:kill", "train.cached:23:kill") as (address, processes, _):
        done = train(dataset, tmp_path / "m.npz", *ASKED, "--scheduler", address, "--scratch", tmp_path / "scratch")
        assert done.returncode == 0, done.stderr
        assert [processes[f"worker {number}"].wait(100) for number in (1, 2)] == [-signal.SIGKILL] * 2
        assert "lost 1 of 3 workers" in done.stderr
        assert "Traceback" not in done.stderr
    assert same(tmp_path / "m.npz", tmp_path / "here.npz")


@pytest.mark.long
def test_a_worker_that_hangs_is_left_out(dataset, tmp_path, monkeypatch, caplog):
    """SIGSTOP: its connections stay open, and it answers nothing."""
    here = streamcut.train(dataset, **FEW)
    with apart(tmp_path, "none:1:kill", "train.shard:20:stop") as (address, processes, _):
        model = streamcut.train(dataset, scheduler=address, scratch=str(tmp_path / "scratch"), silence=3.0, **FEW)
        assert psutil.Process(processes["worker 1"].pid).status() == psutil.STATUS_STOPPED
    assert model.weights.tobytes() == here.weights.tobytes()
    assert model.certificate == here.certificate
    assert "silent for 3 s): their lanes move" in caplog.text


@pytest.mark.long
def test_a_cluster_shrinks_and_grows_loses_its_scheduler_and_another_goes_on(dataset, tmp_path):
    """Between passes; two workers at once, that may have had both copies of a lane, leave theirs to the one that stays."""
    here = streamcut.train(dataset, **FEW)
    keep = CheckpointOptions(str(tmp_path / "run"), every=0.0)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with (
        apart(first, *["none:1:kill"] * 3) as (address, processes, start),
        distributed.Client(address, set_as_default=False) as client,
    ):

        def change(record):
            if record.iteration == 1:
                client.retire_workers(list(client.scheduler_info()["workers"])[:2])
                assert len(client.scheduler_info()["workers"]) == 1
            elif record.iteration == 2:
                start(3, "none:1:kill")
                client.wait_for_workers(2, timeout=60)
            elif record.iteration == 3:
                processes["scheduler"].kill()

        asked = {"scheduler": client, "scratch": str(first / "scratch"), "checkpoint": keep}
        with pytest.raises(ClusterLostError, match=f"the Dask cluster at {address} is lost"):
            streamcut.train(dataset, on_iteration=change, **asked, **FEW)
    with apart(second, "none:1:kill") as (_, processes, _):
        asked = {"scheduler": str(second / "scheduler.json"), "scratch": str(second / "scratch")}
        model = streamcut.train(dataset, checkpoint=replace(keep, resume=True), **asked, **FEW)
    assert model.weights.tobytes() == here.weights.tobytes()
    assert model.certificate == here.certificate


def test_connections_are_dasks_own_and_may_be_encrypted(dataset, tmp_path):
    security = distributed.Security.temporary()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0", "security": security}
    with (
        distributed.LocalCluster(protocol="tls", **options) as server,
        distributed.Client(server, set_as_default=False) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        model = streamcut.train(dataset, scheduler=client, scratch=str(tmp_path), **FEW)
    assert model.weights.tobytes() == streamcut.train(dataset, **FEW).weights.tobytes()


def test_the_command_line_takes_certificates_from_dasks_settings(dataset, tmp_path, monkeypatch):
    """Without them it says which are needed."""
    security = distributed.Security.temporary()
    names = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}
    for name, attribute in names.items():
        (tmp_path / name).write_text(getattr(security, attribute))
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0", "security": security}
    with distributed.LocalCluster(protocol="tls", **options) as server:
        asked = ["--scheduler", server.scheduler_address, "--scratch", tmp_path, "--solver", "ocas", "--C", "0.01"]
        done = train(dataset, tmp_path / "m.npz", *asked)
        assert (done.returncode, "comm.tls.ca-file" in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
        for name in names:
            variable = f"DASK_DISTRIBUTED__COMM__TLS__{name.upper().replace('.', '__').replace('-', '_')}"
            monkeypatch.setenv(variable, str(tmp_path / name))
        done = train(dataset, tmp_path / "m.npz", *asked)
    assert done.returncode == 0, done.stderr
