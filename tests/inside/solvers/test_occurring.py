"""Features that occur in no row take no memory, and models are those of the others alone, to the last bit."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut

_PEAK = """
import sys
from streamcut.cli import main
from streamcut.foundation.systems import peak_bytes
try:
    main()
finally:
    print(peak_bytes())
"""


@pytest.mark.parametrize("options", [["--solver", "ocas", "--set", "max-cuts=4"], ["--loss", "softmax"]])
def test_a_model_of_all_features_is_within_the_least_memory(tmp_path, options):
    """All of its arrays, while it is made and saved: there the peak is."""
    rng, several, width = np.random.default_rng(0), "--strategy" in options or "softmax" in options, 1 << 21
    X, y = (
        sp.csr_array((np.ones(6000), rng.integers(0, 1000, 6000), np.arange(0, 6001, 3)), (2000, width)),
        rng.integers(0, 4, 2000),
    )
    X.sum_duplicates()
    with streamcut.create(tmp_path / "wide.zarr", width, memory="4GB") as made:
        made.append(X, (y if several else y > 1).astype(float))
    line = [
        sys.executable,
        "-P",
        "-c",
        _PEAK,
        "train",
        str(tmp_path / "wide.zarr"),
        "--output",
        str(tmp_path / "m.npz"),
        "--quiet",
    ]
    line += [*options, *["--task", "multiclass"] * several, "--max-passes", "2", "--memory"]
    refused = subprocess.run([*line, "1MB"], capture_output=True, text=True, timeout=120)
    least = re.search(r"at least (\d+)MB", refused.stderr)[1]
    done = subprocess.run([*line, f"{least}MB"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= int(least) * 10**6
