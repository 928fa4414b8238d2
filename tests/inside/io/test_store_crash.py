"""Killing the writer at every step, full disks, locks: nothing half-written gets a name, and resuming gives the same bytes.

Children are forked, so that kernels are compiled once.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.store_crash import content
from kit.waiting import files_in, has_ended, until

import streamcut
from inside.kit.store_crash import convert
from streamcut.errors import DiskFullError, ExitCode, LockedError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation import files as durable
from streamcut.io.stores.verify import verify_store
from streamcut.io.stores.writer import StoreWriter

pytestmark = pytest.mark.process

POINTS = ["open", "chunk_tmp", "chunk_fsync", "chunk_rename", "shard_meta", "journal", "manifest", "root", "rename"]
POINTS += ["array_meta_rename", "shard_meta_rename", "manifest_tmp", "manifest_rename", "root_rename"]


def forked(work: Callable[[], object], failpoint: str = "") -> int:
    """Run `work` in a forked child; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ["STREAMCUT_FAILPOINT"] = failpoint
            durable._hits.clear()
            work()
            code = 0
        except StreamcutError as error:
            code = int(error.exit_code)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(scope="module", params=["zarr", "hdf5"])
def backend(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def undisturbed(backend, tmp_path_factory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("undisturbed") / "store"
    convert(path, backend, threads=3)
    assert verify_store(path, read_data=True).sound
    return content(path)


@pytest.mark.thirds
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_visit_of_every_step_and_resumed(tmp_path, backend, undisturbed, point):
    for visit in range(1, 200):
        path = tmp_path / f"{visit}"
        ended = forked(lambda path=path: convert(path, backend), f"convert.{point}:{visit}:kill")
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        if path.exists():  # killed after it got its name: then it is whole
            assert point == "rename"
        else:
            assert Path(f"{path}.partial").is_dir()
            convert(path, backend, resume=True)
            assert not Path(f"{path}.partial").exists()
        assert content(path) == undisturbed
        shutil.rmtree(path)
    meets = backend == "zarr" or point not in ("array_meta_rename", "root_rename")  # HDF5 stores have no such files
    assert (visit > 1) == meets


def test_resuming_keeps_what_is_stored(tmp_path, backend):
    path = tmp_path / "store"
    assert forked(lambda: convert(path, backend), "convert.shard_meta:1:kill") == -signal.SIGKILL
    before = {p: p.stat().st_mtime_ns for p in Path(f"{path}.partial/store/shards/").rglob("*") if p.name in ("c.0", "000000.h5")}
    kept = {str(p.relative_to(f"{path}.partial/store")): time for p, time in before.items()}
    given = convert(path, backend, resume=True)
    assert given[0] > 0
    for name, written in kept.items():
        if backend == "zarr":  # without n_features, HDF5 files are written again at the end
            assert (path / name).stat().st_mtime_ns == written


def test_killed_at_random_times(tmp_path, backend, undisturbed):
    rng = np.random.default_rng(1)
    for k in range(6):
        path = tmp_path / f"{k}"
        child = os.fork()
        if child == 0:
            try:
                convert(path, backend, threads=2)
            finally:
                os._exit(0)
        wanted = int(rng.integers(0, 25))
        until(lambda: has_ended(child) or files_in(tmp_path / f"{k}.partial") >= wanted, f"file {wanted}")  # noqa: B023
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not path.exists():
            convert(path, backend, resume=True, threads=2)
        assert content(path) == undisturbed


def test_a_second_death_while_resuming(tmp_path, undisturbed, backend):
    path = tmp_path / "store"
    for visit in (4, 3, 2):
        forked(lambda: convert(path, backend, resume=True), f"convert.journal:{visit}:kill")
    convert(path, backend, resume=True)
    assert content(path) == undisturbed


def test_a_torn_journal_costs_its_last_shard(tmp_path, undisturbed, backend):
    path = tmp_path / "store"
    assert forked(lambda: convert(path, backend), "convert.manifest:1:kill") == -signal.SIGKILL
    journal = Path(f"{path}.partial/journal.jsonl").read_bytes()
    last = journal.rindex(b"\n", 0, -1) + 1
    for length in (0, 5, last - 1, last, last + 1, (last + len(journal)) // 2, len(journal) - 1):
        copy = tmp_path / f"at{length}"
        shutil.copytree(f"{path}.partial", f"{copy}.partial")
        Path(f"{copy}.partial/journal.jsonl").write_bytes(journal[:length])
        convert(copy, backend, resume=True)
        assert content(copy) == undisturbed


@pytest.mark.parametrize("point", ["chunk_tmp", "chunk_fsync", "journal", "manifest_tmp"])
def test_a_full_disk_is_told_and_survived(tmp_path, monkeypatch, backend, undisturbed, point):
    for visit in (1, 2):
        path = tmp_path / f"{visit}"
        if point == "manifest_tmp" and visit == 2:
            continue
        durable._hits.clear()
        monkeypatch.setenv("STREAMCUT_FAILPOINT", f"convert.{point}:{visit}:ENOSPC")
        with pytest.raises(DiskFullError, match="bytes needed"):
            convert(path, backend)
        monkeypatch.delenv("STREAMCUT_FAILPOINT")
        assert not path.exists()
        convert(path, backend, resume=True)
        assert content(path) == undisturbed


def test_a_failing_fsync_is_fatal_for_its_commit(tmp_path, monkeypatch, backend, undisturbed):
    durable._hits.clear()
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.chunk_fsync:2:EIO")
    with pytest.raises(OSError, match="Input/output") as caught:
        convert(tmp_path / "store", backend)
    assert caught.value.errno == errno.EIO
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    convert(tmp_path / "store", backend, resume=True)
    assert content(tmp_path / "store") == undisturbed


def test_a_file_size_limit_is_a_full_disk(tmp_path, backend):
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        convert(tmp_path / "store", backend)

    assert forked(limited) == ExitCode.DISK_FULL
    assert not (tmp_path / "store").exists()


def test_two_writers_of_one_store(tmp_path):
    path = tmp_path / "store"
    with StoreWriter(path, options={}):
        assert forked(lambda: convert(path)) == ExitCode.LOCKED
        with pytest.raises(LockedError, match="another process"):
            convert(path)
    convert(path)  # the lock went with its holder, and what it left is removed


def test_a_lock_dies_with_its_process(tmp_path):
    assert forked(lambda: convert(tmp_path / "store"), "convert.open:1:kill") == -signal.SIGKILL
    convert(tmp_path / "store", resume=True)


def test_leftovers_are_removed(tmp_path, backend, undisturbed):
    path = tmp_path / "store"
    assert forked(lambda: convert(path, backend), "convert.chunk_rename:2:kill") == -signal.SIGKILL
    build = Path(f"{path}.partial/store")
    assert list(build.rglob(".*.tmp"))
    (build / "shards" / ".stale.1.tmp").write_text("left by a dead writer")
    convert(path, backend, resume=True)
    assert content(path) == undisturbed
    Path(f"{path}.partial").mkdir()
    Path(f"{path}.partial/journal.jsonl").write_text('{"options":{"torn')
    convert(path, backend, force=True)
    assert content(path) == undisturbed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store"]


def test_replacing_a_store_never_leaves_neither(tmp_path, backend, undisturbed):
    for visit in range(1, 10):
        path = tmp_path / f"{visit}"
        convert(path, backend, options={"source": "older"})
        ended = forked(lambda path=path: convert(path, backend, force=True), f"convert.rename:{visit}:kill")
        if ended == 0:
            break
        if not path.exists():
            assert Path(f"{path}.replaced").is_dir()
        convert(path, backend, resume=True, force=True)
        assert content(path) == undisturbed
        assert not Path(f"{path}.replaced").exists()
    assert visit == 4


def test_resuming_with_other_options_is_refused_by_name(tmp_path):
    path = tmp_path / "store"
    forked(lambda: convert(path), "convert.manifest:1:kill")
    with pytest.raises(UsageError, match=r"shard_nnz was 1500 and is 99.*source was 'rows' and is 'other'"):
        convert(path, resume=True, shard_nnz=99, options={"source": "other"})
    with pytest.raises(UsageError, match="backend"):
        convert(path, "hdf5", resume=True)
    convert(path, resume=True)


def test_resuming_nothing_starts_afresh(tmp_path):
    assert convert(tmp_path / "store", resume=True)[0] == 0


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotFoundError, match="cannot be made"):
        convert(tmp_path / "no" / "such" / "store")


def test_a_journalled_shard_whose_file_is_gone_is_written_again(tmp_path, undisturbed, backend):
    path = tmp_path / "store"
    forked(lambda: convert(path, backend), "convert.manifest:1:kill")
    victim = "000001/y/c.0" if backend == "zarr" else "000001.h5"
    Path(f"{path}.partial/store/shards/{victim}").unlink()
    convert(path, backend, resume=True)
    assert content(path) == undisturbed
    assert streamcut.open(path).manifest.statistics.n_rows == 400
