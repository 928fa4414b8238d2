"""units, errors and files: the foundation that everything else stands on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from streamcut import errors
from streamcut.errors import DiskFullError, ExitCode, LockedError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation import files
from streamcut.foundation.files import failpoint, locked, write_durably
from streamcut.foundation.units import parse_size


@pytest.fixture(autouse=True)
def _no_failpoints(monkeypatch):
    monkeypatch.delenv("STREAMCUT_FAILPOINT", raising=False)
    files._hits.clear()


# --- units ---


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("4gib", 4 * 2**30),
        (" 1.5 MiB ", 3 * 2**19),
        (".5kB", 500),
        ("5.B", 5),
        ("0B", 0),
        ("2TB", 2 * 10**12),
        ("1PiB", 2**50),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "total", "says"),
    [
        ("4", None, "add a unit, for example 4GB"),
        ("4XB", None, "'XB' is not a unit"),
        ("4iB", None, "'iB' is not a unit"),
        ("", None, "not a size"),
        ("-4GB", None, "not a size"),
        ("1e9B", None, "not a size"),
        ("nanB", None, "not a size"),
        ("4 GB 2", None, "not a size"),
        ("50%", None, "no meaning here"),
        ("0%", 10, "above 0%"),
        ("101%", 10, "at most 100%"),
    ],
)
def test_sizes_that_are_refused(text, total, says):
    with pytest.raises(UsageError, match=says) as caught:
        parse_size(text, option="--memory", total=total)
    assert str(caught.value).startswith("memory: ")


# --- errors ---


def _error_classes():
    return [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, StreamcutError)]


def test_every_error_has_an_exit_code_of_its_own():
    kinds = [cls for cls in _error_classes() if cls in (StreamcutError, *StreamcutError.__subclasses__())]
    codes = [cls.exit_code for cls in kinds]
    assert len(set(codes)) == len(codes)
    assert all(cls.exit_code in codes for cls in _error_classes())  # kinds of an error have that of the error
    assert set(codes) == set(ExitCode) - {ExitCode.DONE, ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED}


def test_errors_are_also_what_python_would_raise():
    assert issubclass(NotFoundError, FileNotFoundError)
    assert issubclass(UsageError, ValueError)
    assert issubclass(errors.MemoryBudgetError, MemoryError)


# --- failpoints ---


def test_a_failpoint_fires_at_its_visit_only(monkeypatch):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "here:2:EIO,there:1:ENOSPC")
    failpoint("here")
    with pytest.raises(OSError, match="Input/output") as caught:
        failpoint("here")
    assert caught.value.errno == errno.EIO
    failpoint("here")
    with pytest.raises(OSError, match="No space"):
        failpoint("there")


# --- durable files ---


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_files_have_the_permissions_that_others_have(tmp_path):
    before = os.umask(0o002)
    try:
        write_durably(tmp_path / "file", [b"abc"], 3)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("point", ["m_tmp", "m_fsync", "m_rename"])
@pytest.mark.parametrize(
    ("action", "raised"), [("ENOSPC", DiskFullError), ("EDQUOT", DiskFullError), ("EFBIG", DiskFullError), ("EIO", OSError)]
)
def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch, point, action, raised):
    target = tmp_path / "model"
    write_durably(target, [b"old"], prefix="m")
    files._hits.clear()
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:1:{action}")
    with pytest.raises(raised) as caught:
        write_durably(target, [b"newer"], 5, prefix="m")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]
    if raised is DiskFullError:
        assert str(target) in str(caught.value)
        assert "5 bytes needed" in str(caught.value)


# --- locks ---


def test_a_lock_is_exclusive_and_is_given_back(tmp_path):
    lock = tmp_path / "lock"
    says = r"out\.zarr is being written by another process"
    with locked(lock, "out.zarr"), pytest.raises(LockedError, match=says), locked(lock, "out.zarr"):
        pass
    with locked(lock, "out.zarr"):
        pass


def test_a_lock_dies_with_its_process(tmp_path):
    code = "import sys; from streamcut.foundation.files import locked\n"
    code += "with locked(sys.argv[1], 'x'): print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code, tmp_path / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(LockedError), locked(tmp_path / "lock", "x"):
            pass
        holder.kill()
    with locked(tmp_path / "lock", "x"):
        pass
