"""The first run on a machine compiles its kernels: it says so, keeps its time limit, and takes no more than it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import streamcut

pytestmark = pytest.mark.process

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
NOTICE = "compiling kernels (first use; this run may take 150 MB more than its memory budget)…\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    with streamcut.create(folder / "rows.zarr", 20) as out:
        out.append(X, np.where(X[:, 0] + rng.standard_normal(300) > 0.0, 1.0, -1.0))
    return folder / "rows.zarr"


def trained(store: Path, folder: Path, cache: Path, *more: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "STREAMCUT_KERNELS": "", "NUMBA_CACHE_DIR": str(cache)}
    line = [*STREAMCUT, "train", str(store), "--output", str(folder / "m.npz"), "--force", "--memory", "250MB", *more]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return done


def test_a_first_run_keeps_its_time_limit_and_says_once_that_it_compiles(store, tmp_path):
    """Compilation takes far longer than the limit; the run ends with the first model that it has."""
    cache, limit = tmp_path / "cache", ["--max-time", "1s", "--solver", "ocas", "--tol", "0", "--tol-relative", "0"]
    first = trained(store, tmp_path, cache, *limit)
    assert first.stderr.count(NOTICE) == 1
    model = streamcut.load_model(tmp_path / "m.npz")
    assert model.certificate.stop_reason == "time"
    assert len(model.history) <= 2
    assert model.history[-1]["seconds"] >= 1.0
    began = time.perf_counter()
    second = trained(store, tmp_path, cache, "--solver", "ocas", "--max-passes", "1")
    assert NOTICE not in second.stderr
    assert time.perf_counter() - began < model.history[-1]["seconds"]


def test_a_first_run_takes_at_most_150_mb_more(store, tmp_path):
    results = [json.loads(trained(store, tmp_path, tmp_path / "cache", "--json").stdout.splitlines()[-1]) for _ in range(2)]
    assert results[1]["peak"] <= results[1]["planned"] <= 250_000_000
    assert results[0]["peak"] <= 400_000_000
