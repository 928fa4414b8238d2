"""Stores: other software opens what is written, and files that are cut short, gone or replaced are found and named."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import streamcut
from streamcut.errors import CorruptError

pytestmark = pytest.mark.smoke


def make_rows(kind: str) -> tuple[sp.csr_array, dict[str, np.ndarray]]:
    """X and the columns of small data: text (thirds of floats), ones, counts with queries and weights, gaps (empty rows)."""
    rng, n = np.random.default_rng(7), 400
    X = sp.random_array((n, 300), density=0.03, format="csr", rng=rng)
    if kind == "ones":
        X.data[:] = 1
    elif kind == "queries":
        X.data[:] = rng.integers(1, 100, X.nnz)
        return X, {"y": rng.integers(0, 3, n).astype(float), "weight": rng.random(n), "qid": np.repeat(np.arange(n // 20), 20)}
    elif kind == "gaps":
        X = sp.csr_array(sp.diags_array((np.arange(n) % 3 == 0) * 1.0) @ X.astype(np.float32))
        X.eliminate_zeros()
        X.sort_indices()
    return X, {"y": rng.choice([-1.0, 1.0], n) + 0.1 * (kind == "text")}


def write(path: Path, X, columns, backend: str = "zarr", **options) -> Path:
    with streamcut.create(path, X.shape[1], backend=backend, **{"shard_nnz": 500, **options}) as out:
        out.append(X, **columns)
    return path


@pytest.mark.parametrize("kind", ["text", "ones", "queries", "gaps"])
def test_anndata_opens_every_shard(kind, tmp_path):
    X, columns = make_rows(kind)
    write(tmp_path / "a.zarr", X, columns)
    write(tmp_path / "a.h5", X, columns, "hdf5")
    starts = [0, *accumulate(shard.rows for shard in streamcut.open(tmp_path / "a.zarr").manifest.shards)]
    shards = zarr.open(tmp_path / "a.zarr")["shards"]
    for k, (start, stop) in enumerate(pairwise(starts)):
        with h5py.File(tmp_path / f"a.h5/shards/{k:06d}.h5") as file:
            for found in (anndata.io.read_elem(shards[f"{k:06d}"]), anndata.io.read_elem(file["/"])):
                assert found.shape == (stop - start, X.shape[1])
                assert abs(sp.csr_array(found) - X[start:stop]).sum() == 0
                assert found.indices.dtype == found.indptr.dtype  # or SciPy and scikit-learn refuse most of what one does with it
                assert found.tocoo().nnz == found.nnz


def test_features_beyond_32_bits(tmp_path):
    (tmp_path / "a.svm").write_text(f"1 4:2\n1 4:1 {2**31 + 6}:1\n1 4:2\n")
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr", wide_index=True, shard_nnz=2)
    data = streamcut.open(tmp_path / "a.zarr")
    assert data.manifest.statistics.n_features == 2**31 + 6
    assert [data.read(k).indices.tolist() for k in range(3)] == [[3], [3, 2**31 + 5], [3]]
    assert [data.read(k).indices.dtype.itemsize for k in range(3)] == [4, 8, 4]


# --- damage ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["zarr", "hdf5"])
def store(request, tmp_path) -> Path:
    return write(tmp_path / "store", *make_rows("queries"), request.param, shard_nnz=1500)


def test_wrong_lengths_and_missing_files_are_found_without_reading_data(store, run):
    for file in sorted(path for path in store.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for wrong in (b"", content[:-1], content + b"abcd"):
            file.write_bytes(wrong)
            assert run("info", store, "--check")[0] == 5, file
        file.unlink()
        code, out, err = run("info", store, "--check")
        assert (code, "missing" in out + err, file.name in out + err) == (5, True, True)
        file.write_bytes(content)
    assert run("info", store, "--check")[0] == 0


def test_a_store_that_was_replaced_meanwhile_is_noticed(store):
    data, (X, columns) = streamcut.open(store), make_rows("queries")
    write(store, X + X, {**columns, "y": columns["y"] + 1}, data.manifest.backend, shard_nnz=1500, force=True)
    with pytest.raises(CorruptError):
        data.read(0)
