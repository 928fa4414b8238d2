"""Commands that use a model keep their --memory: they refuse before the work with a figure, and stay below what they got."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import kit.shared.ceilings
import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import ExitCode, MemoryBudgetError
from streamcut.foundation.systems import LINUX
from streamcut.foundation.units import parse_size
from streamcut.io.memory import MemoryDataset

folder = kit.shared.ceilings.folder


pytestmark = pytest.mark.process
CHILD = """
import atexit, sys
from streamcut.foundation.systems import peak_bytes
atexit.register(lambda: print("peak", peak_bytes(), file=sys.stderr))
from streamcut.cli import main
main()
"""
COMMANDS = {
    "evaluate": ["evaluate", "m.npz", "rows.zarr"],
    "predict": ["predict", "m.npz", "rows.zarr", "-o", "p.txt", "--force"],
    "calibrate": ["calibrate", "m.npz", "rows.zarr", "-o", "calibrated.npz", "--force"],
    "verify": ["verify", "m.npz", "rows.zarr"],
}


def figure(said: str) -> int:
    return parse_size(re.search(r"at least (\d+[MG]B)", said)[1])


def ran(folder: Path, line: list[str], memory: str) -> tuple[int, str, int]:
    """(exit code, stderr, peak) of a command in a process of its own."""
    command = [sys.executable, "-P", "-c", CHILD, *line, "--memory", memory]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr, int(re.search(r"peak (\d+)", done.stderr)[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_refusal_names_is_enough(folder, name):
    code, said, _ = ran(folder, COMMANDS[name], "1MB")
    assert (code, "--memory" in said) == (ExitCode.MEMORY, True), said
    memory = figure(said)
    code, said, peak = ran(folder, COMMANDS[name], f"{memory}B")
    assert code == 0, said
    assert peak <= memory or not LINUX or name not in ("evaluate", "predict"), "others compile"


class Unread(MemoryDataset):
    """Rows that nobody may read."""

    def read(self, shard, buffers=None):
        raise AssertionError("a row was read")


@pytest.mark.parametrize("function", [streamcut.predict, streamcut.evaluate, streamcut.calibrate, streamcut.verify])
def test_refused_before_any_row_is_read(folder, function):
    X = sp.csr_array(np.ones((2, 500)))
    forced = {"force": True} if function is streamcut.verify else {}
    with pytest.raises(MemoryBudgetError) as refused:
        function(folder / "m.npz", Unread(X, np.array([-1.0, 1.0])), memory="1MB", **forced)
    assert refused.value.least > 10**6
