"""Matrices of other programs: AnnData in every form, 10x, npz by columns, npy; names, words, and rows without a label."""

from __future__ import annotations

import os

import kit.shared.matrix_files
import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.matrix_files import TYPES, N, whole, write
from reference.rows import store_bytes

import streamcut
from streamcut.errors import BadInputError
from streamcut.io.sources import scattered

cells = kit.shared.matrix_files.cells


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
    stores = [streamcut.open(tmp_path / f"{name}.zarr") for name in forms]
    assert len({store.manifest.fingerprint for store in stores}) == 1
    assert stores[0].recipe.names[5] == "GENE5"
    assert set(stores[0].recipe.labels.names.values()) == set(TYPES)
    assert sorted(os.listdir(tmp_path)) == ["csc.zarr", "csr.zarr", "dense.zarr", "in", "layer.zarr"]


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
    assert len({streamcut.open(tmp_path / f"{n}.zarr").manifest.fingerprint for n in ("csr.npz", "csc.npz", "dense.npy")}) == 1
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
    monkeypatch.setattr("streamcut.io.sources.source.AT_ONCE", 200)
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
    pointers, rows, values = np.array([0, 2, 2, 3, 4]), np.array([5, 0, 5, 2]), np.array([1.0, 2.0, 3.0, 4.0])

    def read(cut):
        return rows[cut], values[cut]

    parts = list(scattered.by_rows(pointers, read, 6, str(tmp_path), "x", start=2))
    assert np.concatenate([part.indices for part in parts]).tolist() == [3, 0, 2]
    assert np.concatenate([part.values for part in parts]).tolist() == [4.0, 1.0, 3.0]
    with pytest.raises(BadInputError, match="row of an entry 5 is not below 5"):
        list(scattered.by_rows(pointers, read, 5, str(tmp_path), "x"))
    assert os.listdir(tmp_path) == []
