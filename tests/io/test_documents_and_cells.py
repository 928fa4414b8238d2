"""Folders of documents and files of cells, from the command line to answers with names."""

from __future__ import annotations

from shutil import copytree

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import streamcut
from streamcut.cli import cli
from streamcut.errors import BadInputError, UsageError

TOPICS = {"cars": ["wheel", "engine"], "space": ["orbit", "moon"]}


def run(*arguments):
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert found.exit_code == 0, (found.output, found.exception)
    return found


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
    run("convert", folders / "train", tmp_path / "folder.zarr", "--text-weights", "tfidf", "-q")
    a, b = streamcut.open(tmp_path / "frame.zarr"), streamcut.open(tmp_path / "folder.zarr")
    assert a.recipe == b.recipe
    assert "café" in b.recipe.names
    for name in ("indptr", "indices", "data", "y"):
        np.testing.assert_array_equal(getattr(a.read(0), name), getattr(b.read(0), name))


def test_documents_are_fitted_measured_and_predicted(folders, tmp_path):
    run("fit", folders / "train", "-o", tmp_path / "m.npz", "--C", 10, "-q")
    model = streamcut.load_model(tmp_path / "m.npz")
    assert model.recipe.table.columns[0].documents == 80
    assert streamcut.evaluate(model, folders / "test").measures()["accuracy"] == 1.0
    run("predict", tmp_path / "m.npz", folders / "test", "--keep", "file", "-o", tmp_path / "p.csv")
    found = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pydict()
    assert found["file"][0] == "cars/000"
    assert [name.split("/")[0] for name in found["file"]] == found["label"]
    flat = run("predict", tmp_path / "m.npz", folders / "test" / "space", "--format", "documents").output
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


ROWS, TYPES = 90, ["B cell", "NK", "T cell"]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The same cells as AnnData of today, as of version 0.6, and as a matrix of 10x."""
    anndata = pytest.importorskip("anndata")
    place, r = tmp_path_factory.mktemp("cells"), np.random.default_rng(1)
    kind = r.integers(0, 3, ROWS)
    raw = sp.random(ROWS, 12, 0.4, random_state=2, format="lil")
    raw[np.arange(ROWS), kind] = 4.0 + r.random(ROWS)
    raw = sp.csr_matrix(raw)
    barcodes, genes = [f"AAAC-{k}" for k in range(ROWS)], [f"gene{j}" for j in range(12)]
    obs = pd.DataFrame({"cell_type": pd.Categorical.from_codes(kind, TYPES), "donor": np.resize(["d1", "d2"], ROWS),
                        "depth": np.arange(ROWS) / 2}, index=barcodes)  # fmt: skip
    whole = anndata.AnnData(raw, obs=obs, var=pd.DataFrame(index=genes))
    whole.raw = whole.copy()
    chosen = whole[:, :8].copy()
    chosen.write(place / "new.h5ad")
    return place


def test_answers_about_cells_have_their_barcodes(cells, tmp_path):
    run("fit", cells / "new.h5ad", "--label", "cell_type", "--layer", "raw", "-o", tmp_path / "m.npz", "--C", 1, "-q")
    for name in ("p.csv", "p.parquet"):
        run("predict", tmp_path / "m.npz", cells / "new.h5ad", "--keep", "donor,depth,cell_type", "-o", tmp_path / name)
        read = pyarrow.csv.read_csv if name == "p.csv" else pyarrow.parquet.read_table
        found = read(tmp_path / name).to_pandas()
        assert list(found.columns) == ["barcode", "donor", "depth", "cell_type", "label"]
        assert list(found.barcode) == [f"AAAC-{k}" for k in range(ROWS)]
        assert list(found.depth) == list(np.arange(ROWS) / 2)
        assert (found.label == found.cell_type).mean() > 0.9
    run("predict", tmp_path / "m.npz", cells / "new.h5ad", "-o", tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().startswith('"barcode","label"\n"AAAC-0",')
    plain = run("predict", tmp_path / "m.npz", cells / "new.h5ad").output
    assert plain.splitlines() == list(found.label)
    assert "underflowed" not in plain
    wrong = CliRunner().invoke(cli, ["predict", str(tmp_path / "m.npz"), str(cells / "new.h5ad"), "--keep", "nothing"])
    assert "no column 'nothing'" in str(wrong.exception)


def test_cells_are_a_validation_too(cells, tmp_path):
    how = ["--label", "cell_type", "--C", "0.1,1", "--validation", cells / "new.h5ad"]
    run("train", cells / "new.h5ad", *how, "-o", tmp_path / "m.npz")
    assert streamcut.evaluate(tmp_path / "m.npz", cells / "new.h5ad").measures()["accuracy"] > 0.9
    with pytest.raises(UsageError, match="no layer 'counts'; it has none"):
        streamcut.train(cells / "new.h5ad", label="cell_type", convert={"layer": "counts"})
