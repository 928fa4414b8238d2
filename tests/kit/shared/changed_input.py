"""What tests/io/test_changed_input.py and tests/inside/io/test_changed_input.py share."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

ROWS = 300


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """The same rows in every format."""
    import anndata
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(3)
    X = sp.random_array((ROWS, 30), density=0.2, format="csr", dtype=np.float32, rng=rng)
    y = rng.choice([-1.0, 1.0], ROWS)
    lines = [
        f"{label:g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in zip(X[[i]].indices, X[[i]].data, strict=True)) + "\n"
        for i, label in enumerate(y)
    ]
    (folder / "a.svm").write_text("".join(lines))
    (folder / "a.svm.gz").write_bytes(gzip.compress("".join(lines).encode()))
    sp.save_npz(folder / "a.npz", X)
    scipy.io.mmwrite(folder / "a.mtx", X.tocoo())
    (folder / "y.txt").write_text("".join(f"{label:g}\n" for label in y))
    obs = pd.DataFrame({"label": y}, index=[f"r{i}" for i in range(ROWS)])
    anndata.AnnData(X=X, obs=obs).write_h5ad(folder / "a.h5ad")
    anndata.AnnData(X=X, obs=obs).write_zarr(folder / "a.anndata")
    lists = {"indices": [X[[i]].indices.tolist() for i in range(ROWS)], "values": [X[[i]].data.tolist() for i in range(ROWS)]}
    pq.write_table(pa.table({"label": y, **lists}), folder / "a.parquet", row_group_size=50)
    return folder


KINDS = {
    "a.svm": [], "a.svm.gz": [], "a.npz": ["--label", "y.txt"], "a.mtx": ["--label", "y.txt"],
    "a.h5ad": ["--label", "label"], "a.anndata": ["--label", "label"], "a.parquet": ["--label", "label"],
}  # fmt: skip


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch) -> Path:
    shutil.copytree(inputs, tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path / "in"
