"""Killed writers, full disks, locks: nothing half-written is a store, and resuming gives the same bytes.

Every moment at which a writer may end is tried by test_store_power_loss. Children are forked, so that kernels are compiled once.
"""

from __future__ import annotations

import contextlib
import os
import signal

import numpy as np
import pytest
from kit.store_crash import content, forked, make

import streamcut
from streamcut.errors import DiskFullError, ExitCode, IncompleteError, LockedError, NotFoundError

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", params=["zarr", "hdf5"])
def backend(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def undisturbed(backend, tmp_path_factory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("undisturbed") / "store"
    make(path, backend, threads=3)
    return content(path)


FAILURES = [(f"{point}:ENOSPC", DiskFullError, "No space left") for point in
            ("store.put_tmp:1", "store.put_tmp:15", "convert.journal:2", "convert.manifest:1")]  # fmt: skip


@pytest.mark.parametrize(("failure", "error", "said"), [*FAILURES, ("store.put_fsync:3:EIO", OSError, "Input/output")])
def test_a_full_or_failing_disk_is_named_and_survived(tmp_path, monkeypatch, backend, undisturbed, failure, error, said):
    monkeypatch.setenv("STREAMCUT_FAILPOINT_RUN", f"{tmp_path}")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", failure)
    with pytest.raises(error, match=said):
        make(tmp_path / "store", backend)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    with pytest.raises((IncompleteError, NotFoundError)):
        streamcut.open(tmp_path / "store")
    make(tmp_path / "store", backend, resume=True)
    assert content(tmp_path / "store") == undisturbed


def test_two_writers_of_one_store(tmp_path):
    path = tmp_path / "store"
    with contextlib.suppress(KeyError), streamcut.create(path) as out:
        out.append(np.eye(3), [1, 2, 1])
        assert forked(lambda: make(path)) == ExitCode.LOCKED
        with pytest.raises(LockedError, match="another process"):
            make(path)
        raise KeyError
    assert os.listdir(tmp_path) == []  # no shard was complete
    make(path)


def test_what_killed_writers_left_is_removed(tmp_path, backend, undisturbed):
    path = tmp_path / "store"
    assert forked(lambda: make(path, backend), "store.put_rename:20:kill") == -signal.SIGKILL
    assert list(path.rglob(".*.tmp"))
    make(path, backend)  # anew
    assert content(path) == undisturbed
    assert forked(lambda: make(path, backend, force=True), "convert.done:1:kill") == -signal.SIGKILL
    assert (path / "journal").is_dir()
    make(path, backend, force=True)
    assert content(path) == undisturbed
    assert os.listdir(tmp_path) == ["store"]


def test_the_store_that_is_replaced_stays_until_rows_of_the_new_one_are_complete(tmp_path, run):
    text, store = tmp_path / "a.svm", tmp_path / "a.zarr"
    text.write_text("1 1:1\n-1 2:1\n" * 50)
    assert run("convert", text, store)[0] == 0
    before = content(store)
    (tmp_path / "bad.svm").write_text("1 1:1\nnonsense\n")
    assert run("convert", tmp_path / "bad.svm", store, "--force")[0] == ExitCode.BAD_INPUT
    assert content(store) == before


@pytest.mark.parametrize("what", ["shards", "journal"])
def test_a_finished_shard_whose_file_is_gone_is_written_again(tmp_path, undisturbed, backend, what):
    path = tmp_path / "store"
    forked(lambda: make(path, backend), "convert.manifest:1:kill")
    shard = "shards/000001/y/c.0" if backend == "zarr" else "shards/000001.h5"
    if what == "shards":
        (path / shard).unlink()
    else:
        (path / "journal/000002").write_text('{"torn')
    assert 0 < make(path, backend, resume=True) < 100
    assert content(path) == undisturbed
