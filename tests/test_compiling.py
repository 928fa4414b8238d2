"""The first run is like every other: what compiles kernels is another process, and a cache that cannot be written is told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamcut.compiling import NOTICE
from streamcut.errors import ExitCode

STREAMCUT = [sys.executable, "-c", "from streamcut.cli import main; main()"]
CODE = """
import numpy as np
from streamcut.compiled import linear
from streamcut import compiling
{before}
out = np.zeros(1)
linear.scores(np.array([0, 1]), np.array([0], np.int32), None, np.array([2.0]), 0.0, out)
linear.scores(np.array([0, 1]), np.array([0], np.int64), None, np.array([3.0]), 0.0, out)
assert out[0] == 3.0
print(compiling.compiler.asked)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compiling")
    text = "".join(f"{label} {row % 7 + 1}:1 9:1\n" for row in range(200) for label in (1, -1))
    (folder / "a.svm").write_text(text)
    done = subprocess.run([*STREAMCUT, "convert", "a.svm", "a.zarr"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "a.zarr"


def train(store: Path, cache: Path, folder: Path, *more: str) -> subprocess.CompletedProcess:
    command = [*STREAMCUT, "train", str(store), "--model", str(folder / "m.npz"), "--force", "--solver", "cpa", *more]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def python(before: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", CODE.format(before=before)]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)


def test_the_least_memory_of_the_first_run_is_that_of_the_second_and_is_enough(store, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    refused = train(store, first, tmp_path, "--memory", "1MB")
    assert refused.returncode == ExitCode.MEMORY
    assert refused.stderr.startswith(f"{NOTICE}\n")
    least = re.search(r"at least (\d+MB)", refused.stderr)[1]
    again = train(store, first, tmp_path, "--memory", least)  # with a cache
    assert again.returncode == 0, again.stderr
    assert NOTICE not in again.stderr
    empty = train(store, second, tmp_path, "--memory", least, "--quiet")  # and without
    assert (empty.returncode, empty.stderr) == (0, "")
    assert len(list(second.rglob("*.nbc"))) == len(list(first.rglob("*.nbc"))) > 0


def test_a_cache_that_cannot_be_kept_is_told(tmp_path):
    env = {"NUMBA_CACHE_DIR": "/proc/nowhere", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "TMPDIR": str(tmp_path)}
    done = python("", env)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert done.stderr.startswith("what is compiled cannot be kept, so every command compiles it again")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("compiling._CHILD = 'import os; os._exit(3)'", "the process that compiles ended"),
        ("import shutil, os; shutil.rmtree(p := os.environ['NUMBA_CACHE_DIR']); open(p, 'w')", "is not in the cache"),
        ("import sys; sys.executable = ''", "where its interpreter is"),
    ],
    ids=["child-dies", "no-folder", "no-interpreter"],
)
def test_a_kernel_is_compiled_here_with_a_warning_when_it_cannot_be_elsewhere(tmp_path, before, reason):
    done = python(before, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("kernels are compiled in this process, whose memory they take, at every start: ")
    assert reason in warning


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_a_child_of_its_own(tmp_path):
    before = """
import os
linear.scores(np.array([0]), np.array([], np.int32), np.array([]), np.array([2.0]), 0.0, np.zeros(0))
if (other := os.fork()) == 0:
    linear.scores(np.array([0]), np.array([], np.int64), np.array([]), np.array([2.0]), 0.0, np.zeros(0))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 7
"""
    done = python(before, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert len(list(tmp_path.rglob("linear.scores*.nbc"))) == 4
    shutil.rmtree(tmp_path)
