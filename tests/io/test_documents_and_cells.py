"""Folders of documents, and matrices of AnnData, 10x and SciPy: names, words, rows without a label, answers with names."""

from __future__ import annotations

from shutil import copytree

import h5py
import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from kit.stored import content

import streamcut
from streamcut.errors import BadInputError, UsageError

TOPICS = {"cars": ["wheel", "engine"], "space": ["orbit", "moon"]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place, r = tmp_path_factory.mktemp("documents"), np.random.default_rng(0)
    for part in ("train", "test"):
        for topic, words in TOPICS.items():
            (place / part / topic).mkdir(parents=True)
            for k in range(40):
                text = " ".join([*r.choice([f"w{j}" for j in range(30)], 12), *r.choice(words, 2), "Café"])
                (place / part / topic / f"{k:03}").write_bytes(text.encode("latin-1" if k % 3 else "utf-8"))
    return place


def test_only_documents_that_do_not_fit_are_refused(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copytree(folders / "train", "docs")
    for topic, megabytes in (("cars", 12), ("space", 12)):  # more than is read to guess what the texts are
        (tmp_path / "docs" / topic / "long").write_text(f"{TOPICS[topic][0]} é " * (megabytes * 10**6 // 9))
    streamcut.convert("docs", "docs.zarr", memory="4GB", labels="label")
    model = streamcut.train("docs.zarr")
    (tmp_path / "docs/space/long").write_text("moon " * 8_000_000)
    assert streamcut.predict(model, "docs")[-1] == "space"
    with open("docs/space/long", "r+b") as file:
        file.truncate(70_000_000)
    with pytest.raises(BadInputError, match=r"long: a document of 70\.0 MB is longer than the 67\.1 MB of one$"):
        streamcut.predict(model, "docs")


def test_a_folder_of_documents_is_the_table_of_its_texts(folders, tmp_path):
    rows = [
        {"text": (path.read_bytes().decode("latin-1" if int(path.name) % 3 else "utf-8")), "label": path.parent.name}
        for path in sorted((folders / "train").rglob("*/*"))
    ]
    streamcut.convert(pd.DataFrame(rows), tmp_path / "frame.zarr", label="label", text="text", text_weights="tfidf")
    streamcut.convert(folders / "train", tmp_path / "folder.zarr", text_weights="tfidf")
    a, b = streamcut.open(tmp_path / "frame.zarr"), streamcut.open(tmp_path / "folder.zarr")
    assert a.recipe == b.recipe
    assert "café" in b.recipe.names
    assert a.manifest.fingerprint == b.manifest.fingerprint


def test_documents_are_fitted_measured_and_predicted(folders, tmp_path, run):
    run("fit", folders / "train", "-o", tmp_path / "m.npz", "--C", 10, "-q")
    model = streamcut.load_model(tmp_path / "m.npz")
    assert model.recipe.table.columns[0].documents == 80
    assert streamcut.evaluate(model, folders / "test").measures()["accuracy"] == 1.0
    run("predict", tmp_path / "m.npz", folders / "test", "--keep", "file", "-o", tmp_path / "p.csv")
    found = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pydict()
    assert found["file"][0] == "cars/000"
    assert [name.split("/")[0] for name in found["file"]] == found["label"]
    flat = run("predict", tmp_path / "m.npz", folders / "test" / "space", "--format", "documents")[1]
    assert flat == "space\n" * 40
    assert list(streamcut.predict(model, folders / "test")) == found["label"]
    alone = streamcut.train(folders / "train", loss="logistic")
    assert sorted(alone.recipe.labels.names.values()) == ["cars", "space"]


def test_what_is_no_folder_of_documents(folders, tmp_path):
    for name in ("a", "b"):
        (tmp_path / "rows" / name).mkdir(parents=True)
        (tmp_path / "rows" / name / "part").write_text("1 1:2\n-1 2:1\n")
    assert streamcut.convert(tmp_path / "rows", tmp_path / "rows.zarr").rows == 4  # svmlight, as ever
    with pytest.raises(UsageError, match="label is needed"):
        streamcut.convert(folders / "test" / "cars", tmp_path / "flat.zarr", format="documents")
    (tmp_path / "bytes" / "a").mkdir(parents=True)
    (tmp_path / "bytes" / "a" / "x").write_bytes(b"PK\0\1")
    with pytest.raises(BadInputError, match="zero bytes"):
        streamcut.convert(tmp_path / "bytes", tmp_path / "b.zarr", format="documents")


N, D, TYPES = 240, 60, np.array(["B cell", "T cell", "NK cell"])


@pytest.fixture(scope="module")
def cells() -> tuple[sp.csr_matrix, np.ndarray]:
    """Logarithms of counts of genes, twenty of which each type has more of, and the types."""
    rng = np.random.default_rng(11)
    kinds = rng.integers(0, 3, N)
    more = rng.poisson(2.0, (N, D)) * (np.arange(D) // 20 == kinds[:, None]) * (rng.random((N, D)) < 0.3)
    return sp.csr_matrix(np.log1p(rng.poisson(0.15, (N, D)) + more).astype(np.float32)), TYPES[kinds]


def anndata_of(path, X, words, genes="GENE"):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"cell_type": pd.Categorical(words), "donor": np.resize(["d1", "d2"], N), "depth": np.arange(N) / 2})
    whole = anndata.AnnData(
        X, obs=obs.set_index(pd.Index([f"AAAC-{k}" for k in range(N)])), var=pd.DataFrame(index=[f"{genes}{j}" for j in range(D)])
    )
    whole.raw = whole.copy()
    whole[:, : D - 4].copy().write_h5ad(path)
    return path


def test_answers_about_cells_have_their_barcodes(cells, tmp_path, run):
    place, model = anndata_of(tmp_path / "new.h5ad", *cells), tmp_path / "m.npz"
    assert run("fit", place, "--label", "cell_type", "--layer", "raw", "-o", model, "--C", 1, "-q")[0] == 0
    for name, read in (("p.csv", pyarrow.csv.read_csv), ("p.parquet", pyarrow.parquet.read_table)):
        assert run("predict", model, place, "--keep", "donor,depth,cell_type", "-o", tmp_path / name)[0] == 0
        found = read(tmp_path / name).to_pandas()
        assert list(found.columns) == ["barcode", "donor", "depth", "cell_type", "label"]
        assert list(found.barcode) == [f"AAAC-{k}" for k in range(N)]
        assert list(found.depth) == list(np.arange(N) / 2)
        assert (found.label == found.cell_type).mean() > 0.9
    assert run("predict", model, place)[1].splitlines() == list(found.label)
    assert "no column 'nothing'" in run("predict", model, place, "--keep", "nothing")[2]
    how = ["--label", "cell_type", "--C", "0.1,1", "--validation", place]
    assert run("train", place, *how, "-o", tmp_path / "v.npz")[0] == 0
    assert streamcut.evaluate(tmp_path / "v.npz", place).measures()["accuracy"] > 0.9
    with pytest.raises(UsageError, match="no layer 'counts'; it has none"):
        streamcut.train(place, label="cell_type", convert={"layer": "counts"})


def test_cells_without_a_label_are_left_out_or_answered_and_genes_go_by_name(cells, tmp_path, run):
    X, words = cells
    some = words.astype(object)
    some[::7] = None
    labelled, model = anndata_of(tmp_path / "cells.h5ad", X.tocsc(), some), tmp_path / "m.npz"
    assert run("convert", labelled, tmp_path / "c.zarr", "--label", "cell_type")[0] == 3
    code, _, said = run("convert", labelled, tmp_path / "c.zarr", "--label", "cell_type", "--missing-labels", "skip")
    assert (code, f"rows without label left out: {len(some[::7])}" in said) == (0, True)
    streamcut.train(tmp_path / "c.zarr", C=0.1).save(model)
    code, answers, _ = run("predict", model, labelled)  # all of them, the cells without a label too
    assert np.mean(np.array(answers.splitlines()) == words) > 0.9
    code, out, said = run("evaluate", model, labelled, "--missing-labels", "skip")
    assert (code, "rows without label left out" in said, "accuracy" in out) == (0, True, True)
    assert run("evaluate", model, labelled)[0] == 3
    assert run("predict", model, anndata_of(tmp_path / "turned.h5ad", X[:, ::-1].tocsr(), words))[0] == 0  # the same names
    code, _, said = run("predict", model, anndata_of(tmp_path / "renamed.h5ad", X, words, "X"))
    assert (code, "'GENE0' there and 'X0' here" in said) == (3, True)


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
