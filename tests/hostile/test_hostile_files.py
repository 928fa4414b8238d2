"""Files of AnnData and 10x that somebody made to do harm: refused with a sentence, nothing outside of them opened (fault 48)."""

from __future__ import annotations

from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from kit.forging import PICKLED, external_link, external_storage, pickled_array, virtual


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("forged", PICKLED)
@pytest.mark.parametrize("where", ["obs/label", "X/data"])
def test_48_no_codec_unpickles_an_anndata(run, tmp_path, forged, where):
    X = sp.random_array((4, 3), density=0.9, format="csr", rng=np.random.default_rng(0))
    anndata.AnnData(X=X, obs=pd.DataFrame({"label": [1.0, -1.0, 1.0, -1.0]}, index=list("abcd"))).write_zarr("a.anndata")
    pickled_array(tmp_path / "a.anndata" / where, 4 if where == "obs/label" else X.nnz, forged)
    code, _, err = run("convert", "a.anndata", "x.zarr", "--label", "label")
    assert (code, "Traceback" in err) == (3, False), err
    assert not (tmp_path / "harm").exists()
    assert not (tmp_path / "x.zarr").exists()


@pytest.mark.parametrize("change", [external_link, external_storage, virtual])
def test_48_an_h5ad_that_leads_elsewhere(run, change):
    obs = pd.DataFrame({"y": [1.0, -1.0]}, index=list("ab"))
    anndata.AnnData(X=np.eye(2, dtype=np.float32), obs=obs).write_h5ad("a.h5ad")
    with h5py.File("a.h5ad", "r+") as file:
        change(file["obs"])
    code, _, err = run("convert", "a.h5ad", "x.zarr", "--label", "y")
    assert (code, "lies in another file" in err) == (3, True), err


@pytest.mark.parametrize("where", ["layers/counts", "var"])
def test_48_other_parts_of_an_h5ad_that_lead_elsewhere(run, where):
    X, obs = np.eye(2, dtype=np.float32), pd.DataFrame({"y": [1.0, -1.0]}, index=list("ab"))
    anndata.AnnData(X=X, obs=obs, layers={"counts": X}).write_h5ad("a.h5ad")
    with h5py.File("a.h5ad", "r+") as file:
        if where == "var":
            file["var/y"] = h5py.ExternalLink("/etc/passwd", "/y")
        else:
            del file[where]
            file.create_dataset(where, (2, 2), np.int8, external=[("/etc/passwd", 0, 4)])
    code, _, err = run("convert", "a.h5ad", "x.zarr", "--label", "y", "--layer", "counts")
    assert (code, "lies in another file" in err) == (3, True), err


def test_48_a_matrix_of_10x_that_leads_elsewhere(run):
    with h5py.File("a.h5", "w") as file:
        group = file.create_group("matrix")
        group["shape"], group["indptr"], group["indices"] = np.array([2, 2]), np.array([0, 1, 2]), np.array([0, 1])
        group["barcodes"] = [b"a", b"b"]
        group.create_dataset("data", (2,), np.int8, external=[("/etc/passwd", 0, 2)])
    Path("labels.txt").write_text("1\n-1\n")
    code, _, err = run("convert", "a.h5", "x.zarr", "--label", "labels.txt")
    assert (code, "lies in another file" in err) == (3, True), err
