"""The first run is like every other: what compiles kernels is another process, and a cache that cannot be written is told."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamcut.compiler import compiling
from streamcut.compiler.compiling import NOTICE
from streamcut.compiler.jit import TARGET
from streamcut.errors import ExitCode

pytestmark = pytest.mark.process

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
CODE = """
import numpy as np
from streamcut.compiled import linear
from streamcut.compiler import compiling
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
    env = {**os.environ, "STREAMCUT_KERNELS": "", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def python(before: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-P", "-c", CODE.format(before=before)]
    environment = {**os.environ, "STREAMCUT_KERNELS": "", **env}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.long
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


HEAP = """
from streamcut.compiler.compiling import compiler
from streamcut.foundation.systems import resident_bytes
pieces = [bytes(100_000) for _ in range(600)]
last = bytes(100_000)
del pieces  # stays with the allocator: `last` lies above it
before = resident_bytes()
compiler.run(lambda: None)
print(before - resident_bytes())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries return memory on their own")
def test_memory_freed_while_kernels_load_goes_back():
    done = subprocess.run([sys.executable, "-P", "-c", HEAP], capture_output=True, text=True, timeout=120)
    assert int(done.stdout) > 40_000_000, done.stderr


def test_a_cache_that_cannot_be_kept_is_told(tmp_path):
    env = {"NUMBA_CACHE_DIR": "/proc/nowhere", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "TMPDIR": str(tmp_path)}
    done = python("", env)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert done.stderr.startswith("compiled kernels cannot be cached, so every command recompiles them")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("compiling._CHILD = 'import os; os._exit(3)'", "the process that compiles ended"),
        ("import shutil, os; shutil.rmtree(p := os.environ['NUMBA_CACHE_DIR']); open(p, 'w')", "is not in the cache"),
        ("import sys; sys.executable = ''", "the path of its interpreter"),
    ],
    ids=["child-dies", "no-folder", "no-interpreter"],
)
def test_a_kernel_is_compiled_here_with_a_warning_when_it_cannot_be_elsewhere(tmp_path, before, reason):
    done = python(before, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("kernels are compiled in this process, in its memory, at every start: ")
    assert reason in warning


def test_all_kernels_of_some_work_are_compiled_once_the_first_is_missing(tmp_path):
    before = """
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.shuffle import take_rows
rows = Chunk(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.ones(3, np.float32), np.array([1.0, -1.0]))
compiling.compiler.run(take_rows, rows, np.array([1, 0]))
print(compiling.compiler.asked, end=" ")
"""
    done = python(before, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 3\n", "")
    assert len(list(tmp_path.rglob("*gather_rows*.nbc"))) == 2


@pytest.mark.parametrize(("needs", "asked"), [([[]], 0), ([["+no-such-feature"]], 2), ([["+no-such-feature"], []], 0)])
def test_shipped_kernels_serve_every_processor_that_has_what_they_need(shipped, tmp_path, needs, asked):
    folder, target = shipped
    (folder / TARGET).write_text(json.dumps([{**target, "needs": each} for each in needs]))
    done = python("", {"NUMBA_CACHE_DIR": str(tmp_path), "STREAMCUT_KERNELS": str(folder)})
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{asked}\n", "")
    assert len(list(tmp_path.rglob("*.nbc"))) == asked


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> tuple[Path, dict]:
    """A folder of kernels for "generic" processors, and what kind that is."""
    cache, folder = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("shipped")
    before = "from numba.core.registry import cpu_target; print(*cpu_target.target_context.codegen().magic_tuple()[:2])"
    done = python(before, {"NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""})
    assert done.returncode == 0, done.stderr
    for file in cache.rglob("*.nbc"):
        shutil.copy(file, folder)
    triple, cpu = done.stdout.splitlines()[0].split()
    assert cpu == "generic"
    return folder, {"triple": triple, "cpu": cpu}


def test_a_rehearsal_finds_what_python_gets_to():
    code = """
import pickle, time
import numpy as np
from streamcut.compiled import linear
from streamcut.compiler.rehearsal import rehearsed
scores = linear.scores, (np.array([0, 1]), np.array([0], np.int32), None, np.array([2.0]), 0.0, np.zeros(1))
found, goes_on = rehearsed(pickle.dumps(scores), 60)
print([(wanted.module, wanted.name, len(wanted.signature), wanted.size > 0) for wanted in found], goes_on)
print(rehearsed(pickle.dumps((time.sleep, (60,))), 0.01))
print(rehearsed(pickle.dumps((divmod, (1, 0))), 60))
assert not linear.scores.signatures
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[('streamcut.compiled.linear', 'scores', 6, True)] False\n([], True)\n([], False)\n", done.stderr


def test_rows_and_large_models_are_not_sent_to_be_rehearsed_with():
    with pytest.raises(OSError, match="too large"):
        compiling._pickled((print, (bytes(20 << 20),)))


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
