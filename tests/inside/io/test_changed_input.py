"""Inputs that change while `convert` reads them: exit 3 with their name, and nothing under a final name."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from reference.rows import dump

import streamcut
from streamcut import prediction
from streamcut.io.conversion import convert

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
    (folder / "a.svm.gz").write_bytes(gzip.compress(dump(folder / "a.svm", X, y).read_bytes()))
    sp.save_npz(folder / "a.npz", X)
    scipy.io.mmwrite(folder / "a.mtx", X.tocoo())
    (folder / "y.txt").write_text("".join(f"{label:g}\n" for label in y))
    obs = pd.DataFrame({"label": y}, index=[f"r{i}" for i in range(ROWS)])
    anndata.AnnData(X=X, obs=obs).write_h5ad(folder / "a.h5ad")
    lists = {"indices": [X[[i]].indices.tolist() for i in range(ROWS)], "values": [X[[i]].data.tolist() for i in range(ROWS)]}
    pq.write_table(pa.table({"label": y, **lists}), folder / "a.parquet", row_group_size=50)
    return folder


KINDS = {
    "a.svm": [], "a.svm.gz": [], "a.npz": ["--label", "y.txt"], "a.mtx": ["--label", "y.txt"],
    "a.h5ad": ["--label", "label"], "a.parquet": ["--label", "label"],
}  # fmt: skip


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch) -> Path:
    shutil.copytree(inputs, tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path / "in"


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grown(path: Path) -> None:
    with open(path, "ab") as file:
        file.write(b"1 1:1\n")


def rewritten(path: Path) -> None:
    """As many bytes in place."""
    content = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(content[::-1])
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))


def meanwhile(monkeypatch, change) -> None:
    """Do `change` when the first rows have been read."""
    left, tell = [change], convert.Work._tell

    def shown(self, *arguments) -> None:
        if left:
            left.pop()()
        tell(self, *arguments)

    monkeypatch.setattr(convert.Work, "_tell", shown)


WAYS = {
    "threads": ["--workers", "3", "--shard-nnz", "900"],
    "one-thread": ["--workers", "1", "--shard-nnz", "900"],
    "shuffled": ["--shuffle", "1"],
    "split": ["--split", "0.5", "--shard-nnz", "900"],
    "skip": ["--on-error", "skip", "--shard-nnz", "900"],
}
CASES = [(name, change, "one-thread") for change in (truncated, rewritten) for name in KINDS]
CASES += [(name, change, "threads") for change in (grown, Path.unlink) for name in ("a.svm.gz", "a.npz", "a.parquet")]
CASES += [(name, grown, way) for name in ("a.svm", "a.svm.gz") for way in WAYS]


@pytest.mark.parametrize(("name", "change", "way"), CASES)
def test_what_changes_is_named_and_nothing_is_left(run, folder, monkeypatch, name, change, way):
    meanwhile(monkeypatch, lambda: change(folder / name))
    before = {path.name for path in folder.iterdir()}
    code, out, err = run("convert", name, "out.zarr", *KINDS[name], *WAYS[way])
    assert (code, out) == (3, ""), err
    assert f"{name}: " in err
    assert "while it was read" in err
    assert {path.name for path in folder.iterdir()} <= before


@pytest.mark.parametrize(("command", "change"), [("predict", grown), ("evaluate", truncated)])
def test_text_that_is_scored(run, folder, monkeypatch, command, change):
    streamcut.convert("a.svm", "out.zarr")
    assert run("train", "out.zarr", "--output", "m.npz", "--quiet")[0] == 0
    score, left = prediction._within, [change]

    def within(*arguments):
        if left:
            left.pop()(folder / "a.svm")
        return score(*arguments)

    monkeypatch.setattr(prediction, "_within", within)
    code, out, err = run(command, "m.npz", "a.svm", *(["-o", "labels.txt"] if command == "predict" else []))
    assert (code, out) == (3, ""), err
    assert "a.svm: " in err
    assert "while it was read" in err
    assert not Path("labels.txt").exists()
