"""`streamcut warm-up` compiles what commands would compile, and knows every task, solver and loss there is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from streamcut import warming
from streamcut.config import CHOICES, SOLVERS
from streamcut.errors import UsageError
from streamcut.io.memory import MemoryDataset
from streamcut.jobs import warmed
from streamcut.jobs.binary import BinaryJob
from streamcut.training import train

pytestmark = pytest.mark.process

FOUND = """
import sys
from streamcut import warming
from streamcut.compiler.rehearsal import rehearsed, Rehearsal

def found(works, **options):
    names = set()
    for work, arguments in works:
        rehearsal = Rehearsal()
        with rehearsal:
            try:
                rehearsal.do(work, arguments)
            except NotImplementedError as error:  # the parser of text, the last kernel there, needs a compiler
                assert "byte_at" in str(error)
        names |= {(wanted.module, wanted.name, str(wanted.signature)) for wanted in rehearsal.found.values()}
    for name in names:
        print(*name)
    return len(names)

warming.compile_all = found
from streamcut.cli import main
main(sys.argv[1:])
"""
LOADED = """
import sys
from streamcut.compiler import jit
load = jit._load
def note(cache, signature, context):
    print(cache._py_func.__module__, cache._py_func.__name__, signature, file=sys.stderr)
    return load(cache, signature, context)
jit._load = note
from streamcut.cli import main
main(sys.argv[1:])
"""


def kernels(code: str, *arguments: str, cwd) -> set[str]:
    command = [sys.executable, "-P", "-c", code, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {line for line in (done.stdout + done.stderr).splitlines() if line.startswith("streamcut.")}


def test_commands_use_no_kernel_that_a_warm_up_does_not_know(tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"{label} {row % 7 + 1}:0.5 9:1\n" for row in range(200) for label in (1, -1)))
    warm = kernels(FOUND, "warm-up", "--task", "binary", "--values", "float32", cwd=tmp_path)
    for command in (
        ["convert", "a.svm", "a.zarr"],
        ["train", "a.zarr", "--model", "m.npz"],
        ["predict", "m.npz", "a.zarr"],
        ["predict", "m.npz", "a.svm"],
        ["evaluate", "m.npz", "a.zarr"],
        ["verify", "m.npz", "a.zarr"],
    ):
        loaded = kernels(LOADED, *command, cwd=tmp_path)
        assert loaded
        assert loaded <= warm, command


def test_everything_is_everything():
    found = warming._trainings((), (), everything=True)
    assert {options["solver"] for options in found} == set(SOLVERS)
    assert {options["loss"] for options in found} == set(CHOICES["loss"])
    assert {options["task"] for options in found} == set(CHOICES["task"]) - {"auto"}


def test_the_usual_trainings_can_be_rehearsed(tmp_path):
    assert len(kernels(FOUND, "warm-up", "--quiet", cwd=tmp_path)) > 50


def test_what_nobody_trains_is_refused():
    with pytest.raises(UsageError, match="no solver of smo trains task sequence"):
        warming.warm_up(["sequence"], ["smo"])


def test_a_process_warms_up_once_for_a_kind_of_training(monkeypatch):
    done = []
    monkeypatch.setattr(warmed, "_known", set())
    monkeypatch.setattr(BinaryJob, "warm_up", lambda self, manifest: done.append(self.options))
    y = np.where(np.arange(12) % 3, 1.0, -1.0)
    data = MemoryDataset(np.eye(12), y)
    for new in (
        {},
        {"C": 3.0, "tol": 1e-4},  # of that kind
        {"loss": "logistic"},
        {"l1": 0.1},
        {"bias": 0.0},
        {"solver": "ocas"},
        {"solver": "ocas", "cut": "exact"},
        {"tol": 1e-2},
    ):
        train(data, workers=1, max_passes=2, **new)
    assert len(done) == 6
    train(MemoryDataset(np.eye(12, dtype=np.int8), y), workers=1)
    train(MemoryDataset(np.eye(12), y, weight=np.ones(12)), workers=1)
    assert len(done) == 8


def test_a_warm_up_that_failed_is_done_again(monkeypatch):
    def fail(self, manifest):
        raise MemoryError

    monkeypatch.setattr(warmed, "_known", set())
    monkeypatch.setattr(BinaryJob, "warm_up", fail)
    for _ in range(2):
        with pytest.raises(MemoryError):
            train(MemoryDataset(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])))
