"""One command gives the same weights however much its process happens to take, also where memory cuts the row cache short."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import streamcut

pytestmark = pytest.mark.process

STREAMCUT = "from streamcut.cli import main; main()"
HELD = f"held = bytearray(range(256)) * (1 << 16); {STREAMCUT}"  # 16 MB more than the same command takes elsewhere
LIMITS = ["--solver", "bundle-dca", "--max-passes", "4", "--tol", "0", "--tol-relative", "0"]


@pytest.fixture(scope="module")
def tall(tmp_path_factory) -> Path:
    """2,000,000 rows with two entries each: a cache of them all takes 200 MB."""
    store, rng, count = tmp_path_factory.mktemp("tall") / "tall.zarr", np.random.default_rng(0), 100_000
    with streamcut.create(store, 200) as out:
        for _ in range(20):
            indices = np.sort(rng.integers([0, 100], [100, 200], (count, 2)), axis=1)
            values = rng.standard_normal((count, 2))
            X = {"indptr": np.arange(0, 2 * count + 1, 2), "indices": indices.ravel(), "values": values.ravel()}
            y = np.where(values[:, 0] + rng.standard_normal(count) > 0.0, 1.0, -1.0)
            out.append(as_matrix(X, count), y)
    return store


def as_matrix(X: dict, count: int):
    import scipy.sparse as sp

    return sp.csr_array((X["values"], X["indices"], X["indptr"]), shape=(count, 200))


def line_of(store: Path, model: Path, *more: str, program: str = STREAMCUT, memory: str = "450MB") -> list[str]:
    given = ["train", str(store), "--output", str(model), "--force", "-q", "--memory", memory, *LIMITS, *more]
    return [sys.executable, "-P", "-c", program, *given]


def weights(line: list[str], model: Path) -> np.ndarray:
    done = subprocess.run(line, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return streamcut.load_model(model).weights


def test_what_the_process_takes_and_its_threads_decide_no_bit(tall, tmp_path):
    model = tmp_path / "m.npz"
    first = weights(line_of(tall, model, "--workers", "1"), model)
    assert streamcut.load_model(model).resources["plan"], "says what it planned"
    for more, program in ((("--workers", "1"), HELD), (("--workers", "2"), STREAMCUT)):
        np.testing.assert_array_equal(weights(line_of(tall, model, *more, program=program), model), first)
    roomy = weights(line_of(tall, model, memory="2GB"), model)
    assert not np.array_equal(roomy, first), "450 MB cut the row cache short"


def test_a_stopped_run_goes_on_to_the_same_weights(tall, tmp_path):
    model, keep = tmp_path / "m.npz", ["--checkpoint", str(tmp_path / "run"), "--checkpoint-every", "0s", "--workers", "1"]
    whole = weights(line_of(tall, model, "--workers", "1"), model)
    model.unlink()
    stopped = subprocess.Popen(line_of(tall, model, *keep), stderr=subprocess.PIPE, text=True)
    while not any((tmp_path / "run").glob("*.checkpoint")) and stopped.poll() is None:
        time.sleep(0.05)
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(400) in (143, 0), stopped.communicate()[1]
    resumed = weights(line_of(tall, model, *keep, "--resume", program=HELD), model)
    np.testing.assert_array_equal(resumed, whole)
