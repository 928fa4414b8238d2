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

import streamcut
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


def removed(path: Path) -> None:
    path.unlink()


def meanwhile(monkeypatch, change) -> None:
    """Do `change` when the first rows have been read."""
    left, tell = [change], convert.Work._tell

    def told(self, *arguments) -> None:
        if left:
            left.pop()()
        tell(self, *arguments)

    monkeypatch.setattr(convert.Work, "_tell", told)


CHANGES = [truncated, grown, rewritten, removed]
WAYS = {
    "threads": ["--workers", "3", "--shard-nnz", "900"],
    "one-thread": ["--workers", "1", "--shard-nnz", "900"],
    "shuffled": ["--shuffle", "1"],
    "split": ["--split", "0.5", "--shard-nnz", "900"],
    "skip": ["--on-error", "skip", "--shard-nnz", "900"],
}


def refused(run, folder: Path, name: str, victim: Path, options: list[str]) -> None:
    before = {path.name for path in folder.iterdir()}
    code, out, err = run("convert", name, "out.zarr", *KINDS[name], *options)
    assert (code, out) == (3, ""), err
    assert f"{victim.relative_to(folder)}: " in err
    assert "while it was read" in err
    assert "Traceback" not in err
    assert {path.name for path in folder.iterdir()} <= before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [name for name in KINDS if name != "a.anndata"])
def test_every_change_of_every_kind_of_input(run, folder, monkeypatch, name, change):
    meanwhile(monkeypatch, lambda: change(folder / name))
    refused(run, folder, name, folder / name, ["--shard-nnz", "900"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
def test_every_way_to_convert_text(run, folder, monkeypatch, name, way):
    meanwhile(monkeypatch, lambda: grown(folder / name))
    refused(run, folder, name, folder / name, WAYS[way])


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("change", [truncated, grown])
def test_text_that_is_scored(run, folder, monkeypatch, command, change):
    from streamcut import prediction

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


def test_nothing_is_said_of_files_that_stay_as_they_are(run, folder):
    for name, options in KINDS.items():
        code, _, err = run("convert", name, f"{name}.zarr", *options)
        assert code == 0, err
        assert streamcut.open(f"{name}.zarr").manifest.statistics.n_rows == ROWS


def test_labels_that_change_between_a_kill_and_its_resumption_are_refused(folder, monkeypatch):
    streamcut.convert("a.npz", "out.zarr", labels="y.txt")
    (folder / "y.txt").write_text("1\n" * ROWS)
    with pytest.raises(streamcut.errors.UsageError, match="other data"):
        streamcut.convert("a.npz", "out.zarr", labels="y.txt", resume=True)
