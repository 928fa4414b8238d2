"""What ends a command, and signals on the way."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from streamcut.cli.signals import HungUp, Terminated
from streamcut.errors import ExitCode

pytestmark = [pytest.mark.smoke, pytest.mark.process]


# --- what ends a command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device", "x"), 8),
        (PermissionError(13, "Permission denied", "x"), 4),
        (OSError(30, "Read-only file system", "x"), 4),
        (OSError(5, "Input/output error", "x"), 5),
        (MemoryError("tried to allocate"), 7),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
        (HungUp(), 129),
        (RuntimeError("can't start new thread"), 7),
        (BrokenPipeError(32, "Broken pipe"), 141),
    ],
)
def test_every_end_has_its_code(run, monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("streamcut.io.opening.open_dataset", fail)
    found, out, err = run("info", "x.zarr")
    assert (found, out) == (code, "")
    assert "Traceback" not in err


def test_a_bug_shows_its_traceback():
    code = (
        "import streamcut.io.opening as opening\ndef fail(*_, **__): raise ZeroDivisionError('a bug')\n"
        "opening.open_dataset = fail\nfrom streamcut.cli import main; main(['info', 'x'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == ExitCode.BUG
    assert "Traceback" in done.stderr
    assert "a bug" in done.stderr


def test_a_signal_that_was_swallowed_is_not_forgotten():
    from streamcut.cli import signals

    with pytest.raises(Terminated):
        signals._receive(signal.SIGTERM, None)
    with signals.deferred() as stop:
        assert stop()
    with pytest.raises(Terminated):
        signals.raise_received()
    with signals.deferred() as stop:
        assert not stop()
        signals._receive(signal.SIGINT, None)
        assert stop()
    with pytest.raises(KeyboardInterrupt):
        signals.raise_received()
    signals.raise_received()  # once only
