"""What tests/execution/test_memory.py and tests/inside/execution/test_memory.py share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamcut.errors import ExitCode

ROOT = Path(__file__).resolve().parents[3]
STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
ROOM = 60 * 10**6  # what the budget has above the least that must be
LIMITS = ["--max-passes", "4", "--tol", "0", "--tol-relative", "0"]


COMPILING = 150 * 10**6  # bytes by which a run that compiles kernels may exceed its budget


def within(budget: int, run: Callable[[], Any], peak: Callable[[Any], int]) -> Any:
    """What `run` returns; if that took more than `budget`, as compiling kernels may, what it returns once they are compiled."""
    result = run()
    if peak(result) > budget:
        assert peak(result) <= budget + COMPILING
        result = run()
    return result


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> dict[int, Path]:
    """{k: store of k times ROOM decoded}, which fit no budget of a test but for that of a thousand rows, 0."""
    folder = tmp_path_factory.mktemp("sizes")
    found = {}
    for times in (0, 2, 4):
        found[times] = folder / f"{times}.zarr"
        rows = ["--rows", str(max(1000, times * ROOM // 396)), "--features", "5000", "--shard-nnz", str(1 << 17)]
        made = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "tools" / "make_data.py"), str(found[times]), "--kind", "text", *rows],
            capture_output=True,
        )
        assert made.returncode == 0, made.stderr
    return found


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
def queries(tmp_path_factory) -> Path:
    """Rows in queries, with five labels."""
    store = tmp_path_factory.mktemp("queries") / "ranking.zarr"
    rows = ["--rows", "150000", "--features", "2000", "--shard-nnz", str(1 << 17)]
    maker = [sys.executable, str(ROOT / "scripts" / "tools" / "make_data.py"), str(store), "--kind", "ranking", *rows]
    assert subprocess.run(maker, capture_output=True).returncode == 0
    return store
