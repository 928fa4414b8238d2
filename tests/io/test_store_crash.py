"""Killed writers, full disks, locks: nothing half-written is a store, and resuming gives the same bytes.

Every moment at which a writer may end is tried by test_store_power_loss. Children are forked, so that kernels are compiled once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from kit.store_crash import content, forked, make
from reference.rows import make_rows, write_svmlight

import streamcut
from streamcut import convert
from streamcut.errors import DiskFullError, ExitCode, IncompleteError, LockedError, NotFoundError, UsageError

pytestmark = [pytest.mark.smoke, pytest.mark.process]


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


# --- conversions of text: what dies at any moment is no store, and --resume ends with the same bytes ----------------------------

WAYS = {
    "plain": {},
    "skipping": {"on_error": "skip"},
    "shuffled split": {"shuffle": 3, "split": 0.6},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """1,500 rows of about 5,000 entries, 13 shards, with a line in ten that is none."""
    path = write_svmlight(tmp_path_factory.mktemp("text") / "a.svm", make_rows(1500, 4))
    lines = path.read_text().splitlines(keepends=True)
    for i in range(0, 1500, 10):
        lines.insert(i, "# a comment\n")
    path.write_text("".join(lines))
    spoiled = [line if i % 10 else "spoiled\n" for i, line in enumerate(lines)]
    (path.parent / "spoiled.svm").write_text("".join(spoiled))
    write_svmlight(path.parent / "groups.svm", make_rows(1500, 4, groups=5))
    return path


def converted(source: Path, folder: Path, failpoint: str = "", **options) -> int:
    """Convert in a process of its own; its exit code, or minus the signal that ended it."""
    return forked(lambda: convert(source, folder / "a.zarr", shard_nnz=400, **options), failpoint)


def source_of(way: str, text: Path) -> Path:
    return text.parent / "spoiled.svm" if way == "skipping" else text


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory) -> dict[str, dict]:
    results = {}
    for way, options in WAYS.items():
        folder = tmp_path_factory.mktemp("undisturbed")
        convert(source_of(way, text), folder / "a.zarr", shard_nnz=400, **options)
        results[way] = content(folder)
    return results


@pytest.mark.parametrize("way", WAYS)
def test_killed_again_and_again(text, whole, tmp_path, way):
    """Each run dies somewhere else and is resumed by the next, until one gets through."""
    deaths = 0
    for point in ("convert.journal:8", "store.put_rename:19", "convert.journal:2", "convert.manifest:1", "convert.done:1"):
        code = converted(source_of(way, text), tmp_path, f"{point}:kill", resume=True, **WAYS[way])
        assert code in (0, -signal.SIGKILL)
        deaths += code != 0
    assert converted(source_of(way, text), tmp_path, resume=True, **WAYS[way]) == 0
    assert content(tmp_path) == whole[way]
    assert deaths >= 3


def test_groups_are_checked_again_after_a_resume(text, tmp_path):
    """Late rows bring back a qid of the first: the resumed run has to know."""
    lines = (text.parent / "groups.svm").read_text().splitlines(keepends=True)
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("".join([*lines[:1400], lines[0], *lines[1400:]]))
    # One block holds all of this text, and is checked before any of it is stored: the refusal needs a run that got further.
    (tmp_path / "store").mkdir()
    good = tmp_path / "store" / "in.svm"
    good.write_text("".join(lines))
    assert converted(good, tmp_path / "store", "convert.journal:8:kill") == -signal.SIGKILL
    times = good.stat()
    good.write_bytes(mixed.read_bytes()[: times.st_size])
    os.utime(good, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(streamcut.errors.BadInputError, match=r"in\.svm:1401: qid 0 comes back"):
        convert(good, tmp_path / "store" / "a.zarr", shard_nnz=400, resume=True)


def test_resume_goes_on_and_refuses_other_data_and_other_options(text, tmp_path):
    """Other threads and another memory make no other conversion."""
    source = Path(shutil.copy(text, tmp_path / "b.svm"))
    assert converted(source, tmp_path, "convert.journal:10:kill") == -signal.SIGKILL
    with pytest.raises(UsageError, match="keep_zeros was False and is True"):
        convert(source, tmp_path / "a.zarr", resume=True, keep_zeros=True)
    whole = source.read_bytes(), source.stat()
    source.write_bytes(whole[0] + b"1 1:1\n")
    with pytest.raises(UsageError, match="inputs was"):
        convert(source, tmp_path / "a.zarr", resume=True)
    source.write_bytes(whole[0])
    os.utime(source, ns=(whole[1].st_atime_ns, whole[1].st_mtime_ns))
    assert convert(source, tmp_path / "a.zarr", resume=True, threads=1, memory="8GB").resumed_rows > 100
