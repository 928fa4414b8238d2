"""Matrices of other programs: AnnData in every form, 10x, npz by columns, npy; names, words, and rows without a label."""

from __future__ import annotations

import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from kit.stored import content

import streamcut
from streamcut.errors import BadInputError

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


def test_cells_are_trained_on_and_scored_by_their_words(cells, tmp_path, run):
    X, words = cells
    known = words.astype(object)
    known[::7] = None
    given = write(tmp_path / "cells.h5ad", X.tocsc(), known)
    assert run("convert", given, tmp_path / "c.zarr", "--label", "cell_type")[0] == 3
    code, _, said = run("convert", given, tmp_path / "c.zarr", "--label", "cell_type", "--missing-labels", "skip")
    assert code == 0
    assert f"rows without label left out: {len(known[::7])}" in said
    model = streamcut.train(given, label="cell_type", convert={"missing_labels": "skip"}, C=0.1)
    code, _, _ = run("train", tmp_path / "c.zarr", "--output", tmp_path / "m.npz", "--C", "0.1", "-q")
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
    assert run("convert", path, tmp_path / "x.zarr", "--label", tmp_path / "types.txt", "-q")[0] == 0
    data = streamcut.open(tmp_path / "x.zarr")
    np.testing.assert_array_equal(content(tmp_path / "x.zarr")[0], X.toarray())
    assert data.recipe.names[:3] == ("ENSG0", "ENSG1", "G2")
    assert [data.recipe.labels.names[label] for label in np.unique(data.read(0).y)] == list(dict.fromkeys(words))
    assert run("train", tmp_path / "x.zarr", "--output", tmp_path / "m.npz", "--C", "0.1", "-q")[0] == 0
    code, answers, _ = run("predict", tmp_path / "m.npz", path)
    assert code == 0
    assert np.mean(np.array(answers.splitlines()) == words) > 0.9
    assert run("convert", path, tmp_path / "none.zarr", "--label", "none", "-q")[0] == 0
    assert run("predict", tmp_path / "m.npz", tmp_path / "none.zarr")[1] == answers


def test_coordinates_that_occur_twice_are_refused_or_added_up(tmp_path):
    data = np.array([100, 5, 100], np.int8)  # their sum is no int8
    np.savez(tmp_path / "x.npz", format=b"coo", shape=(2, 2), row=[0, 1, 0], col=[1, 0, 1], data=data)
    with pytest.raises(BadInputError, match="duplicates"):
        streamcut.convert(tmp_path / "x.npz", tmp_path / "x.zarr", labels="none")
    streamcut.convert(tmp_path / "x.npz", tmp_path / "x.zarr", labels="none", duplicates="sum")
    chunk = streamcut.open(tmp_path / "x.zarr").read(0)
    assert (chunk.indptr.tolist(), chunk.indices.tolist(), chunk.data.tolist()) == ([0, 1, 2], [1, 0], [200.0, 5.0])
