"""What a shell does to a process: streams that are closed or full, few descriptors, limits of memory, a terminal that goes."""

from __future__ import annotations

import subprocess
import sys

import kit.shared.process_faults
import pytest
from kit.shared.process_faults import TRAIN, shell

from streamcut import load_model
from streamcut.compiler.first_use import NOTICE

made = kit.shared.process_faults.made
folder = kit.shared.process_faults.folder


pytestmark = pytest.mark.process


# --- pipes nobody reads, full streams ---


@pytest.mark.parametrize(
    ("line", "code", "creates"),
    [
        ("set -o pipefail; {} predict m.npz rows.svm | true", 141, None),
        (f"{{}} {TRAIN} 2>/dev/full", 0, "new.npz"),
    ],
)
def test_closed_and_full_streams(folder, line, code, creates):
    before = {path.name for path in folder.iterdir()}
    found = shell(folder, line)
    assert (found.returncode, "Traceback" in found.stderr) == (code, False), found.stderr
    assert {path.name for path in folder.iterdir()} - before == ({creates} if creates else set())
    if creates == "new.npz":
        load_model(folder / creates)
    if code == 141:
        assert found.stderr in ("", f"{NOTICE}\n")


def test_what_else_python_drops_is_shown_as_ever():
    script = "from streamcut.cli import signals\nsignals.install()\nclass Late:\n    def __del__(self): 1 / 0\nLate()"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=40)
    assert "ZeroDivisionError" in done.stderr
