"""What tests/hostile/test_lies.py and tests/inside/hostile/test_lies.py share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

X = sp.csr_matrix(np.arange(1.0, 61.0).reshape(20, 3))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("y.txt").write_text("".join(f"{k % 2}\n" for k in range(20)))


def npz(path: str = "x.npz", compressed: bool = False, **changed) -> None:
    """The matrix X with members put in place of its own; None leaves one out."""
    arrays = {"format": np.array(b"csr"), "shape": np.array(X.shape), "data": X.data, "indices": X.indices, "indptr": X.indptr}
    arrays |= changed
    (np.savez_compressed if compressed else np.savez)(path, **{k: v for k, v in arrays.items() if v is not None})


def refused(run, *line: str, code: int = 3) -> str:
    found, _, said = run(*line)
    assert found == code, said
    assert "Traceback" not in said
    assert "Error:" not in said.replace("ValueError:", "")
    assert not Path("o.zarr").exists()
    return said


def converted(run, path: str = "x.npz", code: int = 3) -> str:
    return refused(run, "convert", path, "o.zarr", "--label", "y.txt", "-q", code=code)
