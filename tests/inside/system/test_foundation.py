"""Sizes, errors, files that are written whole or not at all, locks, and waits that a signal ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from streamcut import errors
from streamcut.errors import DiskFullError, ExitCode, LockedError, MemoryBudgetError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation.files import locked, write_durably
from streamcut.foundation.interrupts import result_of
from streamcut.foundation.units import parse_size

# --- units ---


SIZES = {"4GB": 4 * 10**9, "4gib": 4 * 2**30, " 1.5 MiB ": 3 * 2**19, ".5kB": 500, "5.B": 5, "0B": 0, "2TB": 2 * 10**12}
NO_SIZES = [("4", "add a unit, for example 4GB"), ("4XB", "'XB' is not a unit"), ("4iB", "'iB' is not a unit")]
NO_SIZES += [(text, "not a size") for text in ("", "-4GB", "1e9B", "nanB", "4 GB 2")]
NO_SIZES += [("50%", "no meaning here"), ("0%", "above 0%"), ("101%", "at most 100%")]


def test_sizes():
    assert {text: parse_size(text) for text in SIZES} == SIZES


@pytest.mark.parametrize(("text", "says"), NO_SIZES)
def test_sizes_that_are_refused(text, says):
    with pytest.raises(UsageError, match=f"^memory: .*{says}"):
        parse_size(text, option="--memory", total=None if text == "50%" else 10)


# --- errors ---


def test_every_error_has_an_exit_code_of_its_own():
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, StreamcutError)]
    codes = [cls.exit_code for cls in classes if cls in (StreamcutError, *StreamcutError.__subclasses__())]
    assert len(set(codes)) == len(codes)
    assert {cls.exit_code for cls in classes} == set(codes)  # kinds of an error have that of the error
    assert set(codes) == set(ExitCode) - {ExitCode.DONE, ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED}
    for ours, pythons in ((NotFoundError, FileNotFoundError), (UsageError, ValueError), (MemoryBudgetError, MemoryError)):
        assert issubclass(ours, pythons)


# --- durable files ---


def test_files_have_the_permissions_that_others_have(tmp_path):
    before = os.umask(0o002)
    try:
        write_durably(tmp_path / "file", [b"abc"], 3)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("point", ["m_tmp", "m_fsync", "m_rename"])
@pytest.mark.parametrize(("action", "raised"), [("ENOSPC", DiskFullError), ("EDQUOT", DiskFullError), ("EIO", OSError)])
def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch, point, action, raised):
    target = tmp_path / "model"
    write_durably(target, [b"old"], prefix="m")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:1:{action}")
    with pytest.raises(raised) as caught:
        write_durably(target, [b"newer"], 5, prefix="m")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]
    if raised is DiskFullError:
        assert str(target) in str(caught.value)
        assert "5 bytes needed" in str(caught.value)


# --- locks ---


def test_a_lock_is_exclusive_and_is_given_back_also_by_a_process_that_is_killed(tmp_path):
    lock = tmp_path / "lock"
    code = "import sys; from streamcut.foundation.files import locked\n"
    code += "with locked(sys.argv[1], 'x'): print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-P", "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(LockedError, match=r"out\.zarr is being written by another process"), locked(lock, "out.zarr"):
            pass
        holder.kill()
    for _ in range(2):
        with locked(lock, "x"), pytest.raises(LockedError), locked(lock, "x"):
            pass


# --- waits ---


def test_a_signal_that_another_thread_gets_is_handled_during_a_wait():
    answer: Future[str] = Future()
    late = threading.Timer(30.0, answer.set_result, ["at the end of the wait"])
    other = threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: late.cancel() or answer.set_result("at once"))
    try:
        late.start()
        other.start()
        assert result_of(answer) == "at once"
    finally:
        late.cancel()
        signal.signal(signal.SIGUSR1, before)
