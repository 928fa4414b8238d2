"""A worker that lives and cannot be reached: its network is cut, one way or both, and mended again."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import distributed
import kit.shared.dask_partitioned
import psutil
import pytest
from kit.clusters import growing
from kit.dask_owned import ASKED, FEW, apart
from kit.waiting import until

import streamcut
from streamcut import CheckpointOptions, load_model
from streamcut.errors import ClusterLostError

dataset = kit.shared.dask_partitioned.dataset


SILENCE = 3.0


class Gate:
    """Bytes pass in pieces; once it is shut, what comes waits until it is opened. No connection ends meanwhile."""

    def __init__(self):
        self._changed = threading.Condition()
        self._left = math.inf

    def shut(self, after=0):
        """Let this number of pieces pass, and no more."""
        with self._changed:
            self._left = after

    def open(self):
        with self._changed:
            self._left = math.inf
            self._changed.notify_all()

    def pass_one(self):
        with self._changed:
            self._changed.wait_for(lambda: self._left > 0)
            self._left -= 1


class Cable:
    """Connections to `address` go to a port of this machine, through the gate `there`; what comes back, through `back`."""

    def __init__(self, port, there, back):
        self._port, self._gates = port, (there, back)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                for ends, gate in zip(((near, far), (far, near)), self._gates, strict=True):
                    threading.Thread(target=_carry, args=(*ends, gate), daemon=True).start()

    def close(self):
        self._listening.close()


def _carry(source, sink, gate):
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            gate.pass_one()
            sink.sendall(piece)
    gate.pass_one()
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class Network:
    """All that a worker `says` to the others, and what it `hears` of them."""

    def __init__(self, client):
        self.says, self.hears, self._client = Gate(), Gate(), client
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        scheduler = int(client.scheduler.address.rpartition(":")[2])
        self.to_scheduler, self.to_worker = Cable(scheduler, self.says, self.hears), Cable(port, self.hears, self.says)
        self.listens = f"tcp://127.0.0.1:{port}"

    def cut(self, ways, after=0):
        for way in ways:
            getattr(self, way).shut(after)

    def mend(self):
        """Returns when the scheduler hears the worker."""
        before = self._last_seen()
        self.says.open()
        self.hears.open()
        until(lambda: self._last_seen() != before, "a word of the worker")

    def _last_seen(self):
        return self._client.scheduler_info(n_workers=-1)["workers"][self.to_worker.address]["last_seen"]


@contextmanager
def network(folder, others, *, owned=False):
    """(client, its cluster's processes, Network of the last worker), which comes after `others` that nothing happens to."""
    cluster = apart(folder, *["none:1:kill"] * others) if owned else growing(folder, folder, ["none:1:kill"] * others)
    with cluster as (address, processes, start), distributed.Client(address, set_as_default=False) as client:
        wire = Network(client)
        through = folder / "through.json"
        told = json.loads((folder / "scheduler.json").read_text())
        through.write_text(json.dumps({**told, "address": wire.to_scheduler.address}))
        addresses = ["--listen-address", wire.listens, "--contact-address", wire.to_worker.address]
        start(others, "none:1:kill", "--scheduler-file", through, *addresses)
        client.wait_for_workers(others + 1, timeout=60)
        try:
            yield client, processes, wire
        finally:
            wire.says.open()
            wire.hears.open()
            wire.to_scheduler.close()
            wire.to_worker.close()


def test_a_worker_that_is_cut_off_loses_its_lanes_and_is_taken_in_again(dataset, tmp_path, monkeypatch, caplog):
    """It hears what it is to do and does it, and what it says comes too late. When it is back, the other one dies."""
    here = streamcut.train(dataset, **FEW)
    with network(tmp_path, 1) as (client, processes, wire):

        def change(record):
            if record.iteration == 1:
                wire.cut(["says"])
            elif record.iteration == 2:
                wire.mend()
            elif record.iteration == 3:
                processes["worker 0"].kill()

        model = streamcut.train(dataset, scheduler=client, scratch=str(tmp_path), on_iteration=change, silence=SILENCE, **FEW)
        assert re.search(f"{wire.to_worker.address}, silent for \\d", caplog.text)
        assert "their lanes move" in caplog.text
    assert model.weights.tobytes() == here.weights.tobytes()
    assert model.certificate == here.certificate


@pytest.mark.long
@pytest.mark.parametrize("owned", [False, True], ids=["one folder", "each its own"])
@pytest.mark.parametrize("after", [0, 5, 20])
@pytest.mark.parametrize("ways", [("says",), ("hears",), ("says", "hears")], ids="-".join)
def test_cut_off_at_any_moment(dataset, tmp_path, monkeypatch, ways, after, owned):
    """After so many pieces, in the middle of a message too; mended in the next iteration but one, and cut again for good."""
    here = streamcut.train(dataset, **FEW)
    with network(tmp_path, 1, owned=owned) as (client, _, wire):

        def change(record):
            if record.iteration in (1, 4):
                wire.cut(ways, after)
            elif record.iteration == 3:
                wire.mend()

        scratch = tmp_path / "scratch" if owned else tmp_path
        model = streamcut.train(dataset, scheduler=client, scratch=str(scratch), on_iteration=change, silence=SILENCE, **FEW)
    assert model.weights.tobytes() == here.weights.tobytes()
    assert model.certificate == here.certificate


@pytest.mark.long
def test_when_nobody_else_is_left_the_cluster_is_lost_and_the_checkpoint_good(dataset, tmp_path, monkeypatch, caplog):
    here = streamcut.train(dataset, **FEW)
    keep = CheckpointOptions(str(tmp_path / "run"), every=0.0)
    with network(tmp_path, 0) as (client, _, wire):

        def change(record):
            if record.iteration == 2:
                wire.cut(["says", "hears"])

        asked = {"scheduler": client, "scratch": str(tmp_path), "silence": SILENCE, **FEW}
        with pytest.raises(ClusterLostError, match=f"at {client.scheduler.address} is lost: .*without workers for 2 s"):
            streamcut.train(dataset, on_iteration=change, deadline=2.0, checkpoint=keep, **asked)
        assert re.search(f"{wire.to_worker.address}, silent for \\d", caplog.text)
        wire.mend()  # and all that it was told meanwhile comes at once
        model = streamcut.train(dataset, checkpoint=replace(keep, resume=True), **asked)
    assert model.weights.tobytes() == here.weights.tobytes()
    assert model.certificate == here.certificate


def test_57_workers_that_stand_still_are_taken_back_and_nothing_else_is_said(dataset, tmp_path):
    """As on a machine that is too busy: both processes of a local cluster stop for longer than --silence allows, then go on."""
    here = streamcut.train(dataset, **FEW)
    where = ["--scheduler", "local-cluster", "--workers", "2", "--set", "silence=1s", "--scratch", str(tmp_path)]
    command = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", "train", str(dataset.path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, "--output", str(tmp_path / "m.npz"), "--json", *where, *ASKED], **pipes)
    try:
        while json.loads(process.stdout.readline())["event"] != "iteration":
            pass
        workers = [
            each for each in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in " ".join(each.cmdline())
        ]
        assert len(workers) == 2
        for each in workers:
            each.suspend()
        said = []
        while "silent for" not in "".join(said[-1:]):
            said.append(process.stderr.readline())
            assert said[-1], "it ended"
        for each in workers:
            each.resume()
        _, more = process.communicate(timeout=100)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, more
    assert "Traceback" not in "".join(said) + more
    assert load_model(tmp_path / "m.npz").weights.tobytes() == here.weights.tobytes()
