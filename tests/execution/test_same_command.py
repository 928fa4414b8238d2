"""One command gives the same weights however much its process happens to take, also where memory cuts the row cache short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

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
            X = sp.csr_array((values.ravel(), indices.ravel(), np.arange(0, 2 * count + 1, 2)), shape=(count, 200))
            out.append(X, np.where(values[:, 0] + rng.standard_normal(count) > 0.0, 1.0, -1.0))
    return store


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
