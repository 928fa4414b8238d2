"""Matrices of other programs: AnnData in every form, 10x, npz by columns, npy; names, words, and rows without a label."""

from __future__ import annotations

import os
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.rows import store_bytes

import streamcut
from streamcut.errors import BadInputError
from streamcut.io.opening import open_dataset
from streamcut.io.sources import scattered
from streamcut.io.sources.row_source import BlockSize

N, D = 240, 60
TYPES = np.array(["B cell", "T cell", "NK cell"])


@pytest.fixture(scope="module")
def cells() -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(11)
    kinds = rng.integers(0, 3, N)
    dense = rng.poisson(0.15, (N, D)) + (
        rng.poisson(2.0, (N, D)) * (np.arange(D) // 20 == kinds[:, None]) * (rng.random((N, D)) < 0.3)
    )
    return sp.csr_matrix(dense.astype(np.float32)), TYPES[kinds]


def write(path, X, words, **layers) -> str:
    import anndata

    obs = pd.DataFrame({"cell_type": pd.Categorical(words)}, index=[f"c{i}" for i in range(len(words))])
    data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"GENE{j}" for j in range(X.shape[1])]), layers=layers)
    with warnings.catch_warnings(action="ignore"):
        (data.write_zarr if path.suffix == ".zarr" else data.write_h5ad)(path)
    return str(path)


def whole(path) -> np.ndarray:
    data = open_dataset(path)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    values = [np.ones(c.nnz) if c.data is None else c.data for c in chunks]
    shapes = [(c.n_rows, data.manifest.statistics.n_features) for c in chunks]
    return np.vstack(
        [sp.csr_array((v, c.indices, c.indptr), shape=s).toarray() for v, c, s in zip(values, chunks, shapes, strict=True)]
    )


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_every_form_of_anndata_is_the_same_store(cells, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(scattered, "AT_ONCE", 150)  # many buckets
    X, words = cells
    (tmp_path / "in").mkdir()
    forms = {"csr": X, "csc": X.tocsc(), "dense": X.toarray(), "layer": sp.csr_matrix(X.shape, dtype=np.float32)}
    for name, matrix in forms.items():
        layers = {"counts": X.tocsc()} if name == "layer" else {}
        given = write(tmp_path / "in" / f"{name}{suffix}", matrix, words, **layers)
        options = {"layer": "counts"} if layers else {}
        streamcut.convert(given, tmp_path / f"{name}.zarr", labels="obs:cell_type", shard_nnz=300, **options)
        np.testing.assert_array_equal(whole(tmp_path / f"{name}.zarr"), X.toarray())
    stores = [open_dataset(tmp_path / f"{name}.zarr") for name in forms]
    assert len({store.manifest.fingerprint for store in stores}) == 1
    assert stores[0].recipe.names[5] == "GENE5"
    assert set(stores[0].recipe.labels.names.values()) == set(TYPES)
    assert sorted(os.listdir(tmp_path)) == ["csc.zarr", "csr.zarr", "dense.zarr", "in", "layer.zarr"]


def test_cells_are_trained_on_and_scored_by_their_words(cells, tmp_path, run):
    X, words = cells
    known = words.astype(object)
    known[::7] = None
    given = write(tmp_path / "cells.h5ad", X.tocsc(), known)
    assert run("convert", given, tmp_path / "c.zarr", "--labels", "cell_type")[0] == 3
    code, _, said = run("convert", given, tmp_path / "c.zarr", "--labels", "cell_type", "--missing-labels", "skip")
    assert code == 0
    assert f"rows without label left out: {len(known[::7])}" in said
    model = streamcut.train(given, label="cell_type", convert={"missing_labels": "skip"}, C=0.1)
    code, _, _ = run("train", tmp_path / "c.zarr", "--model", tmp_path / "m.npz", "--C", "0.1", "-q")
    np.testing.assert_array_equal(streamcut.load_model(tmp_path / "m.npz").weights, model.weights)
    code, answers, _ = run("predict", tmp_path / "m.npz", given)  # all of them, the cells without a label too
    assert code == 0
    assert np.mean(np.array(answers.splitlines()) == words) > 0.9
    code, out, said = run("evaluate", tmp_path / "m.npz", given, "--missing-labels", "skip")
    assert code == 0
    assert "rows without label left out" in said
    assert "accuracy" in out
    assert run("evaluate", tmp_path / "m.npz", given)[0] == 3
    other = write(tmp_path / "other.h5ad", X[:, ::-1].tocsr(), words)
    assert run("predict", tmp_path / "m.npz", other)[0] == 0  # the same names
    renamed = tmp_path / "renamed.h5ad"
    import anndata

    data = anndata.read_h5ad(given)
    data.var_names = [f"X{j}" for j in range(D)]
    data.write_h5ad(renamed)
    code, _, said = run("predict", tmp_path / "m.npz", renamed)
    assert code == 3
    assert "'GENE0' there and 'X0' here" in said


@pytest.mark.parametrize("version", [2, 3])
def test_matrices_of_10x(cells, tmp_path, run, version):
    X, words = cells
    path = tmp_path / "filtered.h5"
    names = [b"SAME", b"SAME", *(f"G{j}".encode() for j in range(2, D))]
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
        group["shape"] = np.array([D, N])
        group["barcodes"] = [f"AAAC{i}-1".encode() for i in range(N)]
        features = group.create_group("features") if version == 3 else group
        features["id" if version == 3 else "genes"] = [f"ENSG{j}".encode() for j in range(D)]
        features["name" if version == 3 else "gene_names"] = names
    (tmp_path / "types.txt").write_text("".join(f"{word}\n" for word in words))
    assert run("convert", path, tmp_path / "x.zarr", "--labels", tmp_path / "types.txt", "-q")[0] == 0
    data = open_dataset(tmp_path / "x.zarr")
    np.testing.assert_array_equal(whole(tmp_path / "x.zarr"), X.toarray())
    assert data.recipe.names[:3] == ("ENSG0", "ENSG1", "G2")
    assert [data.recipe.labels.names[label] for label in np.unique(data.read(0).y)] == list(dict.fromkeys(words))
    assert run("train", tmp_path / "x.zarr", "--model", tmp_path / "m.npz", "--C", "0.1", "-q")[0] == 0
    code, answers, _ = run("predict", tmp_path / "m.npz", path)
    assert code == 0
    assert np.mean(np.array(answers.splitlines()) == words) > 0.9
    assert run("convert", path, tmp_path / "none.zarr", "--labels", "none", "-q")[0] == 0
    assert run("predict", tmp_path / "m.npz", tmp_path / "none.zarr")[1] == answers


def test_npz_and_npy_in_every_layout(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(scattered, "AT_ONCE", 97)
    X, words = cells
    (tmp_path / "y.txt").write_text("".join(f"{word}\n" for word in words))
    rng = np.random.default_rng(0)
    coo = X.tocoo()
    order = rng.permutation(coo.nnz)
    mixed = sp.coo_matrix((coo.data[order], (coo.row[order], coo.col[order])), shape=X.shape)
    sp.save_npz(tmp_path / "csr.npz", X)
    sp.save_npz(tmp_path / "csc.npz", X.tocsc(), compressed=False)
    sp.save_npz(tmp_path / "coo.npz", mixed)
    np.save(tmp_path / "dense.npy", X.toarray())
    for name in ("csr.npz", "csc.npz", "coo.npz", "dense.npy"):
        streamcut.convert(tmp_path / name, tmp_path / f"{name}.zarr", labels=str(tmp_path / "y.txt"), shard_nnz=200)
        np.testing.assert_array_equal(whole(tmp_path / f"{name}.zarr"), X.toarray())
    assert len({open_dataset(tmp_path / f"{n}.zarr").manifest.fingerprint for n in ("csr.npz", "csc.npz", "dense.npy")}) == 1
    np.save(tmp_path / "f.npy", np.asfortranarray(X.toarray()))
    with pytest.raises(BadInputError, match="stored by columns"):
        streamcut.convert(tmp_path / "f.npy", tmp_path / "f.zarr", labels=str(tmp_path / "y.txt"))


def test_words_survive_a_resumed_conversion(cells, tmp_path, monkeypatch):
    """The first run learns words that the second one has to know."""
    X, words = cells
    sp.save_npz(tmp_path / "x.npz", X)
    (tmp_path / "y.txt").write_text("".join(f"{word}{i // 100}\n" for i, word in enumerate(words)))
    given = {"labels": str(tmp_path / "y.txt"), "shard_nnz": 200, "threads": 1}
    streamcut.convert(tmp_path / "x.npz", tmp_path / "whole.zarr", **given)
    monkeypatch.setattr("streamcut.io.formats.by_readers.BLOCKS", 1 / 32)
    calls = []

    def break_off(self, chunk, position, state=None, append=streamcut.io.stores.writer.StoreWriter.append):
        calls.append(position)
        if len(calls) == 12:
            raise KeyboardInterrupt
        append(self, chunk, position, state)

    with monkeypatch.context() as patch:
        patch.setattr("streamcut.io.stores.writer.StoreWriter.append", break_off)
        with pytest.raises(KeyboardInterrupt):
            streamcut.convert(tmp_path / "x.npz", tmp_path / "part.zarr", **given)
    report = streamcut.convert(tmp_path / "x.npz", tmp_path / "part.zarr", resume=True, **given)
    assert 0 < report.resumed_rows < N
    assert store_bytes(tmp_path / "part.zarr") == store_bytes(tmp_path / "whole.zarr")


def test_scattered_entries_and_what_is_wrong_with_them(tmp_path):
    rows, columns = np.array([5, 0, 5, 2]), np.array([1, 0, 0, 7])

    def blocks():
        yield scattered.Scattered(rows, columns, np.array([1.0, 2.0, 3.0, 4.0]))

    parts = list(scattered.by_rows(blocks, 6, str(tmp_path), BlockSize(1, 10), "x", start=2))
    assert parts[0].first == 2
    assert np.concatenate([part.indices for part in parts]).tolist() == [7, 0, 1]
    with pytest.raises(BadInputError, match="row of an entry 5 is not below 5"):
        list(scattered.by_rows(blocks, 5, str(tmp_path), BlockSize(1, 10), "x"))
    with pytest.raises(BadInputError, match="column pointers"):
        list(scattered.column_entries(np.array([0, 2, 1]), lambda cut: (rows[cut], rows[cut]), "x"))
    assert os.listdir(tmp_path) == []
