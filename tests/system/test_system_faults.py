"""What a system does to a process: files that may not be written, a disk that fills up, stops, clocks, hash seeds, threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path

import click
import kit.shared.system_faults
import pytest
from kit.shared.system_faults import LIMITS, ended, forked, rows, unprivileged
from kit.waiting import has_ended, state_of, ticks_of, until

import streamcut
from streamcut import convert, load_model, save_model, train
from streamcut.cli import cli

folder = kit.shared.system_faults.folder
text = kit.shared.system_faults.text


cli.get_command(click.Context(cli), "train")  # whoever gives root's rights away may not see Python's own files any more

pytestmark = pytest.mark.process
STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]


def bits(model) -> tuple:
    return model.weights.tobytes(), model.certificate


@cache
def undisturbed() -> tuple:
    return bits(train(streamcut.rows(*rows(), shard_nnz=500), **LIMITS))


def read_only(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)


def test_a_store_that_may_not_be_written_is_trained_on(folder, text):
    convert(text, folder / "a.zarr", shard_nnz=1000)
    read_only(folder / "a.zarr")
    expected = train(str(folder / "a.zarr"), **LIMITS)
    (folder / "mine").mkdir()
    os.chmod(folder / "mine", 0o777)
    model = str(folder / "mine" / "m.npz")
    assert unprivileged(lambda: save_model(train(str(folder / "a.zarr"), **LIMITS), model)) == 0
    assert bits(load_model(model)) == bits(expected)


FILLS_UP = """
set -e
mount -t tmpfs -o size=200k tmpfs "$DISK"
code=0; "$@" || code=$?
test $code = 8
test ! -e "$DISK/a.zarr/manifest.json"
mount -o remount,size=50m "$DISK"
"$@" --resume
cp -r "$DISK/a.zarr" "$DISK/../copy.zarr"
"""


def test_a_disk_that_fills_up_and_gets_larger(folder, text):
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces of one's own here (unshare -Urm)")
    (folder / "disk").mkdir()
    command = [*STREAMCUT, "convert", str(text), str(folder / "disk" / "a.zarr"), "--shard-nnz", "200", "--quiet"]
    environment = {**os.environ, "DISK": str(folder / "disk")}
    line = ["unshare", "-Urm", "sh", "-c", FILLS_UP, "sh", *command]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr
    assert "bytes needed" in done.stderr
    assert str(folder / "disk" / "a.zarr") in done.stderr
    convert(text, folder / "whole.zarr", shard_nnz=200)
    for path in (folder / "whole.zarr").rglob("c.0"):
        assert (folder / "copy.zarr" / path.relative_to(folder / "whole.zarr")).read_bytes() == path.read_bytes()


def test_a_process_that_is_stopped_for_a_while_goes_on(tmp_path):
    undisturbed()
    model = str(tmp_path / "m.npz")
    slow = {"STREAMCUT_FAILPOINT": ",".join(f"train.shard:{k}:sleep=0.05" for k in range(1, 20))}

    def work() -> None:
        os.environ.update(slow)
        save_model(train(streamcut.rows(*rows(), shard_nnz=500), workers=2, **LIMITS), model)

    child = forked(work)
    for _ in range(3):
        before = ticks_of(child)
        until(lambda: has_ended(child) or ticks_of(child) > before, "any work")  # noqa: B023
        os.kill(child, signal.SIGSTOP)
        until(lambda: state_of(child) in "TZ", "the stop")
        os.kill(child, signal.SIGCONT)
    assert ended(child) == 0
    assert bits(load_model(model)) == undisturbed()


def test_a_clock_that_is_set_back_has_no_effect(monkeypatch):
    expected = undisturbed()
    past = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(past)))
    model = train(streamcut.rows(*rows(), shard_nnz=500), max_time=60.0, **LIMITS)
    assert bits(model) == expected
    assert all(0.0 <= line["seconds"] < 60.0 for line in model.history)


def test_another_thread_and_another_hash_seed_give_the_same_bits(folder, text):
    convert(text, folder / "a.zarr", shard_nnz=1000)
    expected = bits(train(str(folder / "a.zarr"), **LIMITS))
    found = []
    thread = threading.Thread(target=lambda: found.append(bits(train(str(folder / "a.zarr"), **LIMITS))))
    thread.start()
    thread.join()
    assert found == [expected]
    model = str(folder / "m.npz")
    options = ["--C", "0.1", "--set", "lanes=2", "--max-passes", "12", "--tol", "1e-7", "--tol-relative", "0", "--quiet"]
    line = [*STREAMCUT, "train", str(folder / "a.zarr"), "--output", model, *options]
    subprocess.run(line, check=True, timeout=100, env={**os.environ, "PYTHONHASHSEED": "12345"})
    assert bits(load_model(model)) == expected
