"""Stores: other software opens what is written, and every damage is found, is named, and never becomes other numbers."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import streamcut
from streamcut.errors import BadInputError, CorruptError

pytestmark = pytest.mark.smoke

SHARD_NNZ = 500


@dataclass(frozen=True)
class Rows:
    """X (n × d csr, float64), y, and maybe weight and qid."""

    X: sp.csr_array
    y: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None


def make_rows(kind: str) -> Rows:
    """Small data of each kind: text (thirds of floats), ones, counts with queries and weights, sparse with empty rows."""
    rng = np.random.default_rng(7)
    n, d = 400, 300
    X = sp.random_array((n, d), density=0.03, format="csr", rng=rng)
    y = rng.choice([-1.0, 1.0], n)
    if kind == "text":
        return Rows(X, y + 0.1)
    if kind == "ones":
        X.data[:] = 1
        return Rows(X, y)
    if kind == "queries":
        X.data[:] = rng.integers(1, 100, X.nnz)
        return Rows(X, rng.integers(0, 3, n).astype(float), rng.random(n), np.repeat(np.arange(n // 20), 20))
    X.data[:] = np.float32(X.data)
    X = sp.csr_array(sp.diags_array((np.arange(n) % 3 == 0) * 1.0) @ X)
    X.eliminate_zeros()
    X.sort_indices()
    return Rows(X, y)


def write(path: Path, rows: Rows, backend: str = "zarr", *, block: int = 37, shard_nnz: int = SHARD_NNZ, **options) -> Path:
    with streamcut.create(path, rows.X.shape[1], backend=backend, shard_nnz=shard_nnz, **options) as out:
        for start in range(0, len(rows.y), block):
            part = slice(start, start + block)
            columns = {name: None if getattr(rows, name) is None else getattr(rows, name)[part] for name in ("weight", "qid")}
            out.append(rows.X[part], rows.y[part], **columns)
    return path


@pytest.fixture(scope="module", params=("text", "ones", "queries", "gaps"))
def rows(request) -> Rows:
    return make_rows(request.param)


@pytest.fixture(scope="module")
def stored(rows, tmp_path_factory) -> dict:
    """The rows in each kind of store."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        "zarr": streamcut.open(write(folder / "a.zarr", rows)),
        "hdf5": streamcut.open(write(folder / "a.h5", rows, "hdf5", block=400)),
    }


def test_anndata_opens_every_shard(rows, stored):
    starts = [0, *accumulate(shard.rows for shard in stored["zarr"].manifest.shards)]
    shards = zarr.open(stored["zarr"].path)["shards"]
    for k, (start, stop) in enumerate(pairwise(starts)):
        with h5py.File(Path(stored["hdf5"].path) / f"shards/{k:06d}.h5") as file:
            for found in (anndata.io.read_elem(shards[f"{k:06d}"]), anndata.io.read_elem(file["/"])):
                assert found.shape == (stop - start, rows.X.shape[1])
                assert abs(sp.csr_array(found) - rows.X[start:stop]).sum() == 0
                assert found.indices.dtype == found.indptr.dtype  # or SciPy and scikit-learn refuse most of what one does with it
                assert found.tocoo().nnz == found.nnz


def test_features_beyond_32_bits(tmp_path):
    (tmp_path / "a.svm").write_text(f"1 4:2\n1 4:1 {2**31 + 6}:1\n1 4:2\n")
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr", wide_index=True, shard_nnz=2)
    data = streamcut.open(tmp_path / "a.zarr")
    assert data.manifest.statistics.n_features == 2**31 + 6
    assert [data.read(k).indices.tolist() for k in range(3)] == [[3], [3, 2**31 + 5], [3]]
    assert [data.read(k).indices.dtype.itemsize for k in range(3)] == [4, 8, 4]


@pytest.mark.parametrize(
    ("X", "options", "word"),
    [
        ([[1, np.nan]], {}, "nan"),
        ([[1, 1e200]], {}, "overflows"),
        ([[1, 1]], {"y": [np.inf]}, "label is inf"),
        ([[1, 1]], {"weight": [-1.0]}, "negative|below 0"),
    ],
)
def test_rows_that_break_the_format_are_not_stored(tmp_path, X, options, word):
    with pytest.raises(BadInputError, match=word), streamcut.create(tmp_path / "a") as out:
        out.append(np.array(X), **{"y": [1.0], **options})
    with pytest.raises(BadInputError, match="no rows"), streamcut.create(tmp_path / "a") as out:
        pass
    assert list(tmp_path.iterdir()) == []


# --- damage ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["zarr", "hdf5"])
def pristine(request, tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("pristine") / "store", make_rows("queries"), request.param, block=400, shard_nnz=1500)


@pytest.fixture
def store(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "store")


def files_of(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file())


def read_all(path: Path) -> list[np.ndarray]:
    data = streamcut.open(path)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    return [array for c in chunks for array in (c.indptr, c.indices, c.data, c.y, c.qid, c.weight)]


def test_every_flipped_bit_is_found_and_no_reader_returns_other_numbers(pristine, store, run):
    rng, files, expected = random.Random(0), files_of(store), read_all(pristine)
    for file in files:
        content = file.read_bytes()
        for _ in range(-(-100 // len(files))):
            place, bit = rng.randrange(len(content)), rng.randrange(8)
            file.write_bytes(content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :])
            code, out, err = run("info", store, "--check", "--read-data")
            assert code == 5, f"bit {bit} of byte {place} of {file.relative_to(store)}"
            assert file.name in out + err or file.parent.name in out + err
            try:
                found = read_all(store)
            except CorruptError:
                continue
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
        file.write_bytes(content)
    assert run("info", store, "--check", "--read-data")[0] == 0


def test_wrong_lengths_and_missing_files_are_found_without_reading_data(store, run):
    for file in files_of(store):
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
    data, rows = streamcut.open(store), make_rows("queries")
    other = Rows(rows.X + rows.X, rows.y + 1, rows.weight, rows.qid)
    write(store, other, data.manifest.backend, block=400, shard_nnz=1500, force=True)
    with pytest.raises(CorruptError):
        data.read(0)
