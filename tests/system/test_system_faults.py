"""What a system does to a process: files that may not be written, a disk that fills up, stops, clocks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import numpy as np
import pytest
import scipy.sparse as sp
from kit.store_crash import forked
from reference.rows import dump

import streamcut
from streamcut import convert, load_model, save_model, train
from streamcut.cli import cli, main
from streamcut.errors import ExitCode

pytestmark = pytest.mark.process


NOBODY = 65534
LIMITS = {"C": 0.1, "lanes": 2, "max_passes": 12, "tol": 1e-7, "tol_relative": None}


@cache
def rows() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 20), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, np.where(X @ rng.standard_normal(20) + 0.3 * rng.standard_normal(600) > 0, 1.0, -1.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="streamcut-test-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def text(folder) -> Path:
    return dump(folder / "a.svm", *rows())


def unprivileged(work: Callable[[], object]) -> int:
    """The exit code of `work` in a process for which permissions count: root gives its rights away."""

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        work()

    return forked(dropped)


cli.get_command(click.Context(cli), "train")  # whoever gives root's rights away may not see Python's own files any more

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


def test_a_clock_that_is_set_back_has_no_effect(monkeypatch):
    expected = undisturbed()
    past = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(past)))
    model = train(streamcut.rows(*rows(), shard_nnz=500), max_time=60.0, **LIMITS)
    assert bits(model) == expected
    assert all(0.0 <= line["seconds"] < 60.0 for line in model.history)


@pytest.mark.parametrize("what", ["convert", "model", "checkpoint"])
def test_a_folder_that_may_not_be_written_is_told_as_such(folder, text, what):
    convert(text, folder / "a.zarr", shard_nnz=1000)
    train(str(folder / "a.zarr"), **LIMITS)  # loads all that the child needs
    closed = folder / "closed"
    closed.mkdir()
    os.chmod(closed, 0o555)
    command = ["train", str(folder / "a.zarr"), "--output"]
    work = {
        "convert": lambda: main(["convert", str(text), str(closed / "b.zarr")]),
        "model": lambda: main([*command, str(closed / "m.npz")]),
        "checkpoint": lambda: main([*command, str(folder / "m.npz"), "--checkpoint", str(closed / "run")]),
    }[what]
    assert unprivileged(work) == ExitCode.NOT_FOUND
    assert list(closed.iterdir()) == []
