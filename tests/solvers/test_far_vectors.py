"""Vectors in scratch files: what comes out is what it is with vectors in memory, to the last bit, in less memory."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut


@pytest.mark.parametrize(("row_cache", "held"), [("0", 5), pytest.param("auto", 7, marks=pytest.mark.long)])
def test_the_peak_is_what_was_planned(row_cache, held, tmp_path):
    """24 classes × 250,000 features, most of which occur: in memory a run takes 1.4 GB."""
    rng = np.random.default_rng(1)
    store, D, K = tmp_path / "wide.zarr", 250_000, 24
    with streamcut.create(store, shard_nnz=1 << 15) as out:
        for _ in range(4):
            indices = np.sort(rng.integers(0, D, (2000, 30)), axis=1)
            indices[:, 1:] += np.diff(indices, axis=1) == 0
            X = sp.csr_array(
                (np.ones(60_000, np.float32), np.minimum(indices.ravel(), D - 1), np.arange(0, 60_001, 30)), (2000, D)
            )
            X.sum_duplicates()
            out.append(X, (indices[:, 0] * K // D).astype(float))
    model = tmp_path / "m.npz"
    line = [
        sys.executable,
        "-P",
        "-c",
        "from streamcut.cli import main; main()",
        "train",
        str(store),
        "--task",
        "multiclass",
        "--json",
    ]
    more = [
        "--output",
        str(model),
        "--memory",
        "600MB",
        "--max-passes",
        "3",
        "--set",
        f"row-cache={row_cache}",
        "--scratch",
        str(tmp_path),
    ]
    done = subprocess.run([*line, *more], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["peak"] <= result["planned"] <= 600 * 10**6
    assert any(what.startswith(f"weights and sums {held} × ") for what, _ in streamcut.load_model(model).resources["plan"])
