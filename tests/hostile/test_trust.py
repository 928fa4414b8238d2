"""Files that somebody else has made: one door lets them in, and nothing in them leads out of it, hangs, or is a traceback."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from kit.forging import PICKLED, pickled_array

import streamcut

# --- doors that a file of somebody else comes through, with something else in its place ---


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with rows, labels, a store, a model and a matrix in it."""
    place = tmp_path_factory.mktemp("made")
    before = os.getcwd()
    os.chdir(place)
    rows = [f"{k % 2 * 2 - 1} 1:{k % 2 - 0.5} 2:{k}\n" for k in range(20)]
    Path("a.svm").write_text("".join(rows))
    Path("y.txt").write_text("".join(f"{k % 2}\n" for k in range(20)))
    Path("t.csv").write_text("a,click\n" + "x,yes\ny,no\n" * 5)
    streamcut.convert("a.svm", "a.zarr")
    streamcut.save_model(streamcut.train("a.zarr", task="binary", max_passes=2), "m.npz")
    X = sp.csr_matrix(np.arange(60.0).reshape(20, 3))
    sp.save_npz("x.npz", X)
    os.chdir(before)
    return place


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    """The working folder, with links to those."""
    monkeypatch.chdir(tmp_path)
    for each in made.iterdir():
        Path(each.name).symlink_to(each)
    return tmp_path


DOOR_LINES = [
    ("m.npz", "predict {} a.svm"),
    ("m.npz", "info {}"),
    ("m.npz", "train a.zarr -o n.npz --warm-start {}"),
    ("r.json", "convert t.csv o.zarr --label click --recipe {}"),
    ("c.toml", "--config {} train a.zarr -o n.npz"),
    ("y.txt", "convert x.npz o.zarr --label {}"),
    ("y.npy", "convert x.npz o.zarr --label {}"),
    ("x.npz", "convert {} o.zarr --label y.txt --format npz"),
    ("x.npy", "convert {} o.zarr --label y.txt --format npy"),
    ("x.mtx", "convert {} o.zarr --label y.txt --format mtx"),
    ("x.h5ad", "convert {} o.zarr --label y --format anndata"),
    ("x.h5", "convert {} o.zarr --label y.txt --format 10x"),
    ("x.parquet", "convert {} o.zarr --label click"),
    ("x.feather", "convert {} o.zarr --label click"),
    ("x.csv", "convert {} o.zarr --label click"),
    ("x.jsonl", "convert {} o.zarr --label click"),
    ("names.txt", "convert a.svm o.zarr --feature-names {}"),
    ("map.txt", "convert a.svm o.zarr --label-map {}"),
    ("s.zarr", "train {} -o n.npz"),
]


@pytest.mark.parametrize(("name", "line"), DOOR_LINES)
@pytest.mark.parametrize("kind", ["pipe", "folder", "/dev/zero"])
@pytest.mark.timeout(60)
def test_no_file_where_one_is_expected(folder, run, name, line, kind):
    place = Path("odd") / name
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(kind)
    code, _, said = run(*line.format(place).split())
    assert code in (3, 4, 5), said
    assert "Traceback" not in said
    assert str(place) in said


@pytest.mark.timeout(60)
def test_a_pipe_in_a_folder_of_text_is_not_waited_for(folder, run):
    Path("in").mkdir()
    Path("in/a.svm").write_text("1 1:1\n")
    os.mkfifo("in/b.svm")
    for given in ("in", "in/*.svm"):
        code, _, said = run("convert", given, "o.zarr", "-q")
        assert (code, "in/b.svm: not a file" in said) == (4, True), said


@pytest.mark.timeout(60)
def test_a_pipe_as_journal(folder, run):
    Path("o.zarr/journal").mkdir(parents=True)
    os.mkfifo("o.zarr/journal/000000")
    code, _, said = run("convert", "a.svm", "o.zarr", "-q", "--resume")
    assert (code, "journal" in said) == (4, True), said
    assert run("convert", "a.svm", "o.zarr", "-q")[0] == 0


# --- HDF5 that leads elsewhere ---

_OPENED = 0x20


@contextmanager
def opened_in(folder: Path) -> Iterator[list[str]]:
    """The names of the files of `folder` that were opened within, by whatever library: the kernel says so (inotify)."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    assert handle >= 0
    assert libc.inotify_add_watch(handle, os.fsencode(folder), _OPENED) >= 0
    names: list[str] = []
    try:
        yield names
        names += _events(handle)
    finally:
        os.close(handle)


def _events(handle: int) -> Iterator[str]:
    try:
        while content := os.read(handle, 1 << 16):
            while content:
                size = int.from_bytes(content[12:16], "little")
                if name := content[16 : 16 + size].rstrip(b"\0"):
                    yield os.fsdecode(name)
                content = content[16 + size :]
    except BlockingIOError:
        return


def _h5ad(path: str) -> None:
    X = np.arange(8, dtype=np.float32).reshape(4, 2)
    obs = pd.DataFrame({"y": [1.0, -1.0, 1.0, -1.0]}, index=list("abcd"))
    anndata.AnnData(X=X, obs=obs, layers={"counts": X}, uns={"about": X}).write_h5ad(path)


def _lead_out(file: h5py.File, member: str, how: str, outside: Path) -> None:
    if member in file:
        del file[member]
    if how == "external link":
        file[member] = h5py.ExternalLink(outside / "private.h5", "/X")
    elif how == "link to a pipe":
        file[member] = h5py.ExternalLink(outside / "pipe", "/X")
    elif how == "soft link":
        file[member] = h5py.SoftLink("/var")
    elif how == "external storage":
        file.create_dataset(member, (4, 2), "f4", external=[(outside / "private.h5", 0, 32)])
    else:
        many = (None, 2) if how == "open view" else (4, 2)
        layout = h5py.VirtualLayout((4, 2), "f4", maxshape=many)
        source = h5py.VirtualSource(outside / "private.h5", "X", (4, 2), "f4", maxshape=many)
        if how == "open view":
            layout[: h5py.h5s.UNLIMITED, :] = source[: h5py.h5s.UNLIMITED, :]
        else:
            layout[:] = source
        file.create_virtual_dataset(member, layout)


LINKS = ("external link", "link to a pipe", "soft link")
MEMBERS = ("X", "obs", "obs/y", "var", "layers", "layers/counts", "uns", "uns/about", "more")


@pytest.fixture
def outside(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("outside")
    with h5py.File(place / "private.h5", "w") as file:
        file.create_dataset("X", (4, 2), "f4", np.full((4, 2), 777.0), maxshape=(None, 2), chunks=(4, 2))
    os.mkfifo(place / "pipe")
    return place


@pytest.mark.parametrize("how", [*LINKS, "view", "open view", "external storage"])
@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.timeout(60)
def test_an_h5ad_that_leads_elsewhere(tmp_path, monkeypatch, run, outside, member, how):
    monkeypatch.chdir(tmp_path)
    _h5ad("a.h5ad")
    with h5py.File("a.h5ad", "r+") as file:
        _lead_out(file, member, how, outside)
    with opened_in(outside) as names:
        code, _, said = run("convert", "a.h5ad", "o.zarr", "--label", "y", "--layer", "counts", "-q")
    assert names == []
    assert "Traceback" not in said
    needed = member in ("obs", "obs/y", "var", "layers", "layers/counts")
    if how in LINKS or needed:
        assert (code, member.split("/")[0] in said) == (3, True), said
        assert not Path("o.zarr").exists()
    else:  # members that nobody needs are not opened
        assert code == 0, said
        assert streamcut.open("o.zarr").read(0).data.max() == 7.0


@pytest.mark.timeout(60)
def test_a_10x_file_that_leads_elsewhere_or_is_endless(tmp_path, monkeypatch, run, outside):
    monkeypatch.chdir(tmp_path)
    Path("y.txt").write_text("1\n-1\n")
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2], "barcodes": [b"a", b"b"]}
    wrong = [(member, how) for member in ("matrix", "matrix/data", "matrix/features", "more") for how in (*LINKS, "view")]
    for member, how in [*wrong, ("endless", "")]:
        with h5py.File("a.h5", "w") as file:
            for name, values in parts.items():
                file[f"matrix/{name}"] = values
            if member == "endless":
                file.create_dataset("a", (10**11,), "i1", chunks=(10**6,))
            else:
                _lead_out(file, member, how, outside)
        with opened_in(outside) as names:
            code, _, said = run("convert", "a.h5", "o.zarr", "--label", "y.txt", "-q", "--force")
        assert names == []
        expected = 0 if member == "endless" or (member == "more" and how == "view") else 3
        expected = 4 if (member, how) == ("matrix", "view") else expected  # no matrix at all
        assert (code, "Traceback" in said) == (expected, False), (member, how, said)


@pytest.mark.parametrize("forged", PICKLED)
@pytest.mark.parametrize("where", ["obs/label", "X/data"])
def test_no_codec_unpickles_an_anndata(run, tmp_path, monkeypatch, forged, where):
    monkeypatch.chdir(tmp_path)
    X = sp.random_array((4, 3), density=0.9, format="csr", rng=np.random.default_rng(0))
    anndata.AnnData(X=X, obs=pd.DataFrame({"label": [1.0, -1.0, 1.0, -1.0]}, index=list("abcd"))).write_zarr("a.anndata")
    pickled_array(tmp_path / "a.anndata" / where, 4 if where == "obs/label" else X.nnz, forged)
    code, _, err = run("convert", "a.anndata", "x.zarr", "--label", "label")
    assert (code, "Traceback" in err) == (3, False), err
    assert not (tmp_path / "harm").exists()
    assert not (tmp_path / "x.zarr").exists()
