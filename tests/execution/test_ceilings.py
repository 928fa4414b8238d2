"""Commands that use a model keep their --memory: they refuse before the work with a figure, and stay below what they got."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import ExitCode, MemoryBudgetError

pytestmark = pytest.mark.process


ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """rows.zarr, ROWS rows of two classes, and m.npz that was trained on them."""
    folder = tmp_path_factory.mktemp("ceilings")
    rng = np.random.default_rng(0)
    X = sp.csr_array((np.ones(4 * ROWS, np.float32), rng.integers(0, 500, 4 * ROWS), np.arange(0, 4 * ROWS + 1, 4)), (ROWS, 500))
    X.sum_duplicates()
    y = np.where(X[:, :200].sum(axis=1) > rng.integers(0, 3, ROWS), 1.0, -1.0)
    with streamcut.create(folder / "rows.zarr", 500, shard_nnz=1 << 17) as out:
        out.append(X, y)
    streamcut.train(folder / "rows.zarr", max_passes=2).save(folder / "m.npz")
    return folder


def test_arrays_are_refused(folder):
    with pytest.raises(MemoryBudgetError, match="2 rows"):
        streamcut.predict(folder / "m.npz", np.ones((2, 500)), memory="1MB")


def test_a_model_says_what_it_takes_before_it_takes_it(folder, tmp_path, run):
    model = load_model(folder / "m.npz")
    weights = np.zeros(5_000_000)
    weights[7] = 0.1
    save_model(replace(model, weights=weights, witnesses=()), tmp_path / "wide.npz")
    sizes: list[int] = []
    assert (load_model(tmp_path / "wide.npz", sizes.append).weights == weights).all()
    assert (tmp_path / "wide.npz").stat().st_size < 10**6
    assert sizes[0] >= weights.nbytes
    with pytest.raises(MemoryBudgetError, match=r"the model: 40\.0 MB"):
        streamcut.predict(tmp_path / "wide.npz", folder / "rows.zarr", memory="1MB")
    for data in ([], [folder / "rows.zarr"]):
        code, out, err = run("explain", tmp_path / "wide.npz", *data, "--memory", "1MB")
        assert (code, out) == (ExitCode.MEMORY, "")
        assert "the model: 40.0 MB" in err


CHILD = """
import atexit, os, sys
STATUS = "/proc/self/status"  # ru_maxrss would begin with what the parent had
peak = lambda: next(line.split()[1] for line in open(STATUS) if line.startswith("VmHWM")) if os.path.exists(STATUS) else 0
atexit.register(lambda: print("peak", 1024 * int(peak()), file=sys.stderr))
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
    number, unit = re.search(r"at least (\d+)([MG])B", said).groups()
    return int(number) * {"M": 10**6, "G": 10**9}[unit]


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
    assert peak <= memory or sys.platform != "linux" or name not in ("evaluate", "predict"), "others compile"
