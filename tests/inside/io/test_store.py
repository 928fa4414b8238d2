"""Every store passes the contract, and other software opens what we write."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import streamcut
from inside.kit.store_contract import KINDS, SHARD_NNZ, Rows, StoreContract, make_rows
from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.manifest_file import manifest_bytes, read_manifest
from streamcut.io.stores.stored import ZarrStore
from streamcut.io.stores.writer import StoreWriter

pytestmark = pytest.mark.smoke


def write(path: Path, rows: Rows, *, block: int = 37, backend: str = "zarr", shard_nnz: int = SHARD_NNZ, **options):
    options = {"n_features": rows.X.shape[1], "options": {}, **options}
    with StoreWriter(path, backend=backend, shard_nnz=shard_nnz, **options) as writer:
        chunk = rows.chunk()
        for start in range(0, chunk.n_rows, block):
            writer.append(chunk.rows(start, min(start + block, chunk.n_rows)), {"row": start})
        return writer.finish({"made": "by a test"})


@pytest.fixture(scope="module", params=KINDS)
def rows(request) -> Rows:
    return make_rows(request.param)


@pytest.fixture(scope="module")
def native(rows, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("native") / "a.zarr"
    write(path, rows)
    return path


@pytest.fixture(scope="module")
def hdf5(rows, native) -> Path:
    path = native.with_name("a.h5")
    write(path, rows, backend="hdf5")
    return path


class TestZarr(StoreContract):
    @pytest.fixture
    def dataset(self, native):
        data = streamcut.open(native)
        assert isinstance(data, ZarrStore)
        return data


class TestHDF5(StoreContract):
    @pytest.fixture
    def dataset(self, hdf5):
        return streamcut.open(hdf5)


class TestMemory(StoreContract):
    @pytest.fixture
    def dataset(self, rows):
        data = rows.X.astype(np.int8) if (rows.X.data == np.round(rows.X.data)).all() else rows.X
        return streamcut.rows(data, rows.y, weight=rows.weight, qid=rows.qid, shard_nnz=SHARD_NNZ)


def test_backends_and_memory_cut_alike_and_have_one_fingerprint(rows, native, tmp_path):
    other = write(tmp_path / "a.h5", rows, backend="hdf5", block=400)
    manifest = read_manifest(native / "manifest.json")
    memory = streamcut.rows(rows.X, rows.y, weight=rows.weight, qid=rows.qid, shard_nnz=SHARD_NNZ).manifest
    assert manifest.fingerprint == other.fingerprint
    assert [(s.rows, s.nnz) for s in manifest.shards] == [(s.rows, s.nnz) for s in memory.shards]
    np.testing.assert_allclose(manifest.statistics.weight_sum or 0, memory.statistics.weight_sum or 0, rtol=1e-12)
    assert replace(manifest.statistics, weight_sum=None) == replace(memory.statistics, weight_sum=None)


def test_anndata_opens_every_shard(rows, native, tmp_path):
    write(tmp_path / "a.h5", rows, backend="hdf5", n_features=None)
    starts = np.cumsum([0] + [shard.rows for shard in read_manifest(native / "manifest.json").shards])
    shards = zarr.open(native)["shards"]
    for k, (start, stop) in enumerate(pairwise(starts)):
        with h5py.File(tmp_path / "a.h5" / "shards" / f"{k:06d}.h5") as file:
            for found in (anndata.io.read_elem(shards[f"{k:06d}"]), anndata.io.read_elem(file["/"])):
                assert abs(sp.csr_array(found)[:, : rows.X.shape[1]] - rows.X[start:stop, : found.shape[1]]).sum() == 0
                assert found.indices.dtype == found.indptr.dtype  # or SciPy and scikit-learn refuse most of what one does with it
                assert found.tocoo().nnz == found.nnz
            assert anndata.io.read_elem(shards[f"{k:06d}"]).shape == (stop - start, rows.X.shape[1])


def test_indices_beyond_32_bits(tmp_path):
    far = 2**31 + 5
    small = Chunk(np.array([0, 1]), np.array([3], np.int32), np.array([2.0]), np.array([1.0]))
    large = Chunk(np.array([0, 2]), np.array([3, far]), None, np.array([1.0]))
    with StoreWriter(tmp_path / "a", shard_nnz=2, options={}) as writer:
        for k, chunk in enumerate((small, large, small)):
            writer.append(chunk, {"k": k})
        manifest = writer.finish({})
    assert manifest.statistics.n_features == far + 1
    data = streamcut.open(tmp_path / "a")
    assert [data.read(k).indices.tolist() for k in range(3)] == [[3], [3, far], [3]]
    assert [data.read(k).indices.dtype.itemsize for k in range(3)] == [4, 8, 4]


def test_newer_formats_ask_for_a_newer_streamcut(tmp_path):
    manifest = write(tmp_path / "a", make_rows("ones"))
    (tmp_path / "a/manifest.json").write_bytes(manifest_bytes(replace(manifest, format_version=3)))
    with pytest.raises(NotFoundError, match="needs streamcut >="):
        streamcut.open(tmp_path / "a")


def test_rows_that_break_the_format_are_not_stored(tmp_path):
    def chunk(indices, data, y=1.0, weight=None):
        weight = None if weight is None else np.array([weight])
        return Chunk(np.array([0, 2]), np.array(indices, np.int32), np.array(data, np.float64), np.array([y]), None, weight)

    bad = {
        "increase": chunk([2, 2], [1, 1]),
        "outside": chunk([1, 10], [1, 1]),
        "data holds nan": chunk([1, 2], [1, np.nan]),
        "y holds nan": chunk([1, 2], [1, 1], y=np.inf),
        "overflows": chunk([1, 2], [1, 1e200]),
        "negative": chunk([1, 2], [1, 1], weight=-1.0),
    }
    for word, rows in bad.items():
        with StoreWriter(tmp_path / "a", n_features=10, options={}) as writer:
            writer.append(rows, {})
            with pytest.raises(BadInputError, match=word):
                writer.finish({})
        assert not (tmp_path / "a").exists()
    with StoreWriter(tmp_path / "a", options={}) as writer, pytest.raises(BadInputError, match="no rows"):
        writer.finish({})
