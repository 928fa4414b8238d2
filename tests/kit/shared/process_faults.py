"""What tests/execution/test_process_faults.py and tests/inside/execution/test_process_faults.py share."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streamcut

STREAMCUT = f"{shlex.quote(sys.executable)} -c 'from streamcut.cli import main; main()'"
TRAIN = "train rows.zarr -o new.npz --solver ocas --max-passes 2"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    drawn = zip(rng.choice([-1, 1], 200), rng.random(200), rng.integers(2, 9, 200), strict=True)
    rows = [f"{y} 1:{y * x:.3f} {k}:1\n" for y, x, k in drawn]
    (folder / "rows.svm").write_text("".join(rows))
    streamcut.convert(folder / "rows.svm", folder / "rows.zarr", shard_nnz=100)
    streamcut.save_model(streamcut.train(str(folder / "rows.zarr"), solver="ocas", max_passes=2), folder / "m.npz")
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess:
    """`line` in a shell, where {} is streamcut."""
    return subprocess.run(["bash", "-c", line.replace("{}", STREAMCUT)], cwd=folder, capture_output=True, text=True, timeout=120)
