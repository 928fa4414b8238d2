"""units, errors and files: the foundation that everything else stands on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut import errors
from streamcut.errors import DiskFullError, ExitCode, LockedError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation import files
from streamcut.foundation.files import disk_full, failpoint, locked, write_durably
from streamcut.foundation.units import format_bytes, parse_size


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


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1234567, "1.23 MB"),
        (999_999, "1.00 MB"),
        (45.6e9, "45.6 GB"),
        (3e17, "300 PB"),
    ],
)
def test_bytes_for_people(count, text):
    assert format_bytes(count) == text


@given(st.integers(0, 10**17))
@settings(max_examples=100, deadline=None)
def test_what_is_printed_can_be_read_back(count):
    assert parse_size(format_bytes(count)) == pytest.approx(count, rel=6e-3)


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


def test_a_failpoint_can_kill(tmp_path):
    code = "from streamcut.foundation.files import write_durably; import sys; write_durably(sys.argv[1], b'new')"
    target = tmp_path / "file"
    for point in ("file_tmp", "file_fsync", "file_rename"):
        target.write_bytes(b"old")
        environment = {**os.environ, "STREAMCUT_FAILPOINT": f"{point}:1:kill"}
        run = subprocess.run([sys.executable, "-P", "-c", code, target], env=environment, check=False)
        assert run.returncode == -9
        assert target.read_bytes() == b"old"
    subprocess.run([sys.executable, "-P", "-c", code, target], check=True)
    assert target.read_bytes() == b"new"


# --- durable files ---


def test_parts_are_joined_and_nothing_is_left_over(tmp_path):
    write_durably(tmp_path / "file", b"abc", memoryview(bytearray(b"defg"))[1:], b"")
    assert (tmp_path / "file").read_bytes() == b"abcefg"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_files_have_the_permissions_that_others_have(tmp_path):
    before = os.umask(0o002)
    try:
        write_durably(tmp_path / "file", b"abc")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("point", ["m_tmp", "m_fsync", "m_rename"])
@pytest.mark.parametrize(
    ("action", "raised"), [("ENOSPC", DiskFullError), ("EDQUOT", DiskFullError), ("EFBIG", DiskFullError), ("EIO", OSError)]
)
def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch, point, action, raised):
    target = tmp_path / "model"
    write_durably(target, b"old", prefix="m")
    files._hits.clear()
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:1:{action}")
    with pytest.raises(raised) as caught:
        write_durably(target, b"newer", prefix="m")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]
    if raised is DiskFullError:
        assert str(target) in str(caught.value)
        assert "5 bytes needed" in str(caught.value)


def test_a_first_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "file_tmp:2:ENOSPC")
    with pytest.raises(DiskFullError):
        write_durably(tmp_path / "file", b"abc", b"def")
    assert os.listdir(tmp_path) == []


def test_what_went_wrong_first_is_told(tmp_path, monkeypatch):
    """On a file system that has become read-only nothing can be cleaned up either."""

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "while cleaning up")

    monkeypatch.setenv("STREAMCUT_FAILPOINT", "file_tmp:1:EIO")
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(OSError, match="Input/output") as caught:
        write_durably(tmp_path / "file", b"abc")
    assert caught.value.errno == errno.EIO


def test_other_errors_pass_disk_full_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError), disk_full(tmp_path):
        (tmp_path / "none" / "file").write_bytes(b"")


def test_a_full_device_is_a_full_disk():
    with pytest.raises(DiskFullError, match="/dev/full: No space left"), disk_full("/dev/full"):
        Path("/dev/full").write_bytes(b"x")


# --- locks ---


def test_a_lock_is_exclusive_and_is_given_back(tmp_path):
    lock = tmp_path / "lock"
    says = r"out\.zarr is being written by another process"
    with locked(lock, "out.zarr"), pytest.raises(LockedError, match=says), locked(lock, "out.zarr"):
        pass
    with locked(lock, "out.zarr"):
        pass


def test_without_locks_only_what_needs_none_goes_on(tmp_path, monkeypatch):
    def refused(handle: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(files, "lock", refused)
    with pytest.raises(OSError, match="no locks"), locked(tmp_path / "lock", "x"):
        pass
    with locked(tmp_path / "lock", "x", required=False):
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


def test_blas_that_is_loaded_later_takes_one_thread_too():
    """SciPy brings its own, which a limit made before it was loaded does not know."""
    code = (
        "from streamcut.foundation.machine import one_blas_thread\n"
        "import numpy, threadpoolctl\n"
        "with one_blas_thread(): pass\n"
        "import scipy.linalg\n"
        "threadpoolctl.threadpool_limits(2, user_api='blas')\n"
        "with one_blas_thread():\n"
        "    print({each['num_threads'] for each in threadpoolctl.threadpool_info() if each['user_api'] == 'blas'})"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{1}\n"
