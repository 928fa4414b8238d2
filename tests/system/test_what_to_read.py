"""What a stranger reads first is there, short and true: files that ARCHITECTURE.md names, the algorithm in NumPy, examples."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streamcut

ROOT = Path(__file__).resolve().parents[2]
READING = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## What to read")[1].split("\n## ")[0]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
NEEDS = {"cells": "anndata"}


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_what_to_read_is_there_and_short():
    named = re.findall(r"^\| `([\w/.]+)`", READING, re.MULTILINE)
    assert len(named) >= 10
    assert {name: lines(ROOT / name) for name in named if lines(ROOT / name) > 250} == {}
    assert lines(ROOT / "docs" / "algorithm.py") <= 120
    assert lines(ROOT / "streamcut" / "protocols.py") <= 100
    assert len(EXAMPLES) == 5


@pytest.fixture(scope="module")
def algorithm() -> dict:
    return runpy.run_path(str(ROOT / "docs" / "algorithm.py"))


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_the_algorithm_has_the_objective_and_bound_of_train_in_each_pass(algorithm, C):
    X, y = algorithm["example"]()
    options = {"solver": "ocas", "max_cuts": 2, "intercept": "none", "lanes": 1, "tol": 1e-9, "tol_relative": 1e-9}
    model = streamcut.train((X, y), loss="hinge", C=C, max_passes=20, **options)
    trained = np.array([(each["primal"], each["lower_bound"]) for each in model.history])
    _, history = algorithm["train"](X, y, C, tol=1e-9, max_passes=20)
    np.testing.assert_allclose(history, trained, rtol=1e-9)
    assert len(history) == 20
    assert all(bound >= proved for (_, bound), (_, proved) in zip(history, trained, strict=True))  # which counts rounding


def test_the_algorithm_ends_after_as_many_passes_as_train(algorithm):
    X, y = algorithm["example"]()
    options = {"solver": "ocas", "max_cuts": 2, "intercept": "none", "tol": None, "tol_relative": 0.01}
    model = streamcut.train((X, y), loss="hinge", C=0.1, **options)
    w, history = algorithm["train"](X, y, 0.1, tol=0.01)
    assert len(history) == model.history[-1]["passes"] > 2
    assert history[-1][0] - history[-1][1] <= 0.01 * history[-1][0]
    np.testing.assert_allclose(w, model.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.process
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_are_short_and_run(example, tmp_path):
    pytest.importorskip(NEEDS.get(example.stem, "numpy"))
    assert lines(example) <= 40
    command = [sys.executable, "-W", "ignore", "-P", str(example)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"no weights (can )?reach less than \d", done.stdout)
    assert list(tmp_path.iterdir()) == []
