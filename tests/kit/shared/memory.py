"""What tests/execution/test_memory.py and tests/inside/execution/test_memory.py share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import ExitCode

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
ROOM = 30 * 10**6  # what the budget has above the least that must be
LIMITS = ["--max-passes", "4", "--tol", "0", "--tol-relative", "0"]


COMPILING = 150 * 10**6  # bytes by which a run that compiles kernels may exceed its budget


def within(budget: int, run: Callable[[], Any], peak: Callable[[Any], int]) -> Any:
    """What `run` returns; if that took more than `budget`, as compiling kernels may, what it returns once they are compiled."""
    result = run()
    if peak(result) > budget:
        assert peak(result) <= budget + COMPILING
        result = run()
    return result


def write(store: Path, rows: int, features: int = 5000, classes: int = 2) -> Path:
    """Make a store of rows with 50 entries, 404 bytes each as they are in memory, whose labels depend on some of them."""
    rng, each, most = np.random.default_rng(0), 50, features // 50
    with streamcut.create(store, features, shard_nnz=1 << 17) as out:
        for start in range(0, rows, 20_000):
            n = min(20_000, rows - start)
            drawn = rng.integers(0, most, (n, each))
            indices = (drawn + most * np.arange(each)).ravel()
            score = drawn[:, :5].sum(axis=1) / most + 0.4 * rng.standard_normal(n)
            X = sp.csr_array((rng.random(n * each, np.float32), indices, each * np.arange(n + 1)), (n, features))
            out.append(X, np.digitize(score, np.linspace(1.0, 4.0, classes + 1)[1:-1]).astype(float))
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> dict[int, Path]:
    """{k: store of k times ROOM decoded}, which fit no budget of a test but for that of a thousand rows, 0."""
    folder = tmp_path_factory.mktemp("sizes")
    return {times: write(folder / f"{times}.zarr", max(1000, times * ROOM // 404)) for times in (0, 2, 4)}


def line_of(store: Path, folder: Path, memory: str, *more: str) -> list[str]:
    model = ["--output", str(folder / "m.npz"), "--force", "--json"]
    return [*STREAMCUT, "train", str(store), *model, "--memory", memory, *LIMITS, *more]


def command(store: Path, folder: Path, memory: str, *more: str, **options) -> subprocess.CompletedProcess:
    line = line_of(store, folder, memory, *more)
    return subprocess.run(line, capture_output=True, text=True, timeout=120, **options)


def result_of(done: subprocess.CompletedProcess) -> dict:
    """What a training reported."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def result_within(budget: int, line: list[str]) -> dict:
    """What the command `line` reports, once its kernels are compiled if it takes more than `budget`."""

    def run() -> dict:
        return result_of(subprocess.run(line, capture_output=True, text=True, timeout=600))

    return within(budget, run, lambda result: result["peak"])


def least(store: Path, folder: Path, *more: str) -> str:
    """The minimum that a refusal states, as it states it."""
    done = command(store, folder, "1MB", *more)
    assert done.returncode == ExitCode.MEMORY, done.stderr
    return re.search(r"at least (\d+MB)", done.stderr)[1]


@pytest.fixture(scope="module")
def several(tmp_path_factory) -> Path:
    """Rows of five classes."""
    return write(tmp_path_factory.mktemp("several") / "classes.zarr", 80_000, 2000, classes=5)
