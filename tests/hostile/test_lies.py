"""Files whose headers, types and flags say what is not so: refused with a sentence, within the memory that was allowed."""

from __future__ import annotations

import bz2
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from kit.forging import Harm

X = sp.csr_matrix(np.arange(1.0, 61.0).reshape(20, 3))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("y.txt").write_text("".join(f"{k % 2}\n" for k in range(20)))


def npz(path: str = "x.npz", compressed: bool = False, **changed) -> None:
    """The matrix X with members put in place of its own; None leaves one out."""
    arrays = {"format": np.array(b"csr"), "shape": np.array(X.shape), "data": X.data, "indices": X.indices, "indptr": X.indptr}
    arrays |= changed
    (np.savez_compressed if compressed else np.savez)(path, **{k: v for k, v in arrays.items() if v is not None})


def refused(run, *line: str, code: int = 3) -> str:
    found, _, said = run(*line)
    assert found == code, said
    assert "Traceback" not in said
    assert "Error:" not in said.replace("ValueError:", "")
    assert not Path("o.zarr").exists()
    return said


def converted(run, path: str = "x.npz", code: int = 3) -> str:
    return refused(run, "convert", path, "o.zarr", "--label", "y.txt", "-q", code=code)


MB = 1 << 20


AS = X.indices.astype
INDICES = {
    "fractions": X.indices + 0.5,
    "whole floats": AS(float),
    "booleans": np.zeros(X.nnz, bool),
    "beyond 2^63": AS(np.uint64) + np.uint64(2**63 + 5),
    "negative": X.indices - 1,
    "beyond the columns": X.indices + 1,
    "times": AS("M8[s]"),
    "complex": AS(complex),
}
POINTERS = {
    "floats": X.indptr.astype(float),
    "booleans": X.indptr.astype(bool),
    "beyond 2^63": X.indptr.astype(np.uint64) + np.uint64(2**63),
    "decreasing": np.where(np.arange(21) == 5, 0, X.indptr),
    "beyond the entries": X.indptr * 2,
    "negative": X.indptr - 1,
    "too few": X.indptr[:-1],
}


@pytest.mark.parametrize("lie", POINTERS)
def test_pointers_of_an_npz(run, lie):
    npz(indptr=POINTERS[lie])
    assert "indptr" in converted(run) or lie == "too few"


@pytest.mark.parametrize("lie", INDICES)
def test_indices_of_an_npz_and_rows_and_columns_of_coordinates(run, lie):
    npz(indices=INDICES[lie])
    assert "x.npz" in converted(run)
    coo, wrong = X.tocoo(), INDICES[lie]
    for row, col in ((coo.row + 20 if lie == "beyond the columns" else wrong, coo.col), (coo.row, wrong)):
        npz(format=np.array(b"coo"), row=row, col=col, indices=None, indptr=None)
        converted(run)


@pytest.mark.parametrize("lie", [*(f"indices {lie}" for lie in INDICES), *(f"indptr {lie}" for lie in POINTERS)])
@pytest.mark.parametrize("kind", ["h5ad", "10x"])
def test_numbers_in_hdf5(run, kind, lie):
    member, _, which = lie.partition(" ")
    wrong = (INDICES if member == "indices" else POINTERS)[which]
    if wrong.dtype.kind == "M":
        wrong = wrong.astype("S30")  # HDF5 has no times
    with h5py.File("x.h5", "w") as file:
        group = file.create_group("X" if kind == "h5ad" else "matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = wrong if name == member else getattr(X, name)
        if kind == "h5ad":
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", X.shape
            file["obs/y"] = np.arange(20) % 2
        else:
            group["shape"], group["barcodes"] = X.shape[::-1], [b"a"] * 20
    refused(run, "convert", "x.h5", "o.zarr", "--label", "y" if kind == "h5ad" else "y.txt", "-q")


def test_lists_in_parquet(run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = {"label": [1.0, 0.0], "indices": pa.array([[1], [2**63 + 5]], pa.list_(pa.uint64())), "values": [[1.0], [1.0]]}
    pq.write_table(pa.table(table), "x.parquet")
    assert "index 9223372036854775813" in refused(run, "convert", "x.parquet", "o.zarr", "--label", "label", "-q")


HEADERS = {
    "shape of one": {"shape": np.array([20])},
    "shape of three": {"shape": np.array([20, 3, 1])},
    "scalar shape": {"shape": np.array(20)},
    "shape of floats": {"shape": np.array([20.0, np.nan])},
    "negative shape": {"shape": np.array([-20, 3])},
    "shape beyond 2^63": {"shape": np.array([2**64 - 1, 3], np.uint64)},
    "shape of words": {"shape": np.array(["20", "3"])},
    "endless shape": {"shape": np.zeros(10**6, np.int8)},
    "format of two": {"format": np.array([b"csr", b"csc"])[:, None]},
    "no format": {"format": np.array([], "S3")},
    "format that is not UTF-8": {"format": np.array(b"\xff\xfe")},
    "format bsr": {"format": np.array(b"bsr")},
    "format of numbers": {"format": np.array(7)},
    "pickled data": {"data": np.array([Harm()] * 60, object)},
    "pickled shape": {"shape": np.array([Harm(), 3], object)},
    "words for data": {"data": np.array(["1"] * 60)},
    "complex data": {"data": X.data + 1j},
    "data in two dimensions": {"data": X.data.reshape(20, 3)},
    "few data": {"data": X.data[:-1]},
    "few indices": {"indices": X.indices[:-1]},
    "no indices": {"indices": None},
    "no shape": {"shape": None},
    "records": {"data": np.zeros(60, [("a", "f4")])},
    "rows that are not there": {"shape": np.array([10**15, 3])},
}


@pytest.mark.parametrize("lie", HEADERS)
@pytest.mark.parametrize("compressed", [False, True])
def test_headers_of_an_npz(run, lie, compressed):
    npz(compressed=compressed, **HEADERS[lie])
    assert "x.npz" in converted(run)
    assert not Path("harm").exists()


@pytest.mark.parametrize(
    "description",
    [
        b"{}", b"1", b"{'descr': 'O', 'shape': (60,)}", b"{'descr': '<f8', 'fortran_order': False, 'shape': (6000,)}",
        b"{'descr': '<q9', 'fortran_order': False, 'shape': (60,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**99,)}", b"\xff" * 40,
    ],
)  # fmt: skip
def test_descriptions_of_arrays(run, description):
    lying = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(description)) + description + X.data.tobytes()
    npz()
    with zipfile.ZipFile("x.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile("x.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, lying if name == "data.npy" else content)
    assert "x.npz" in converted(run)
    Path("x.npy").write_bytes(lying)
    converted(run, "x.npy")


@pytest.mark.parametrize(
    "head",
    ["5 5 3", "5 5 100", "-5 5 1", "99999999999999999999 5 1", "5", "a b c", "5 5 1 1", "0 0 5", "5 5 -1", "20 3 " + "9" * 5000],
)
def test_heads_of_matrix_market(run, head):
    for kind in (
        "coordinate real general",
        "coordinate integer symmetric",
        "array real general",
        "coordinate pattern skew",
        "x y z",
    ):
        Path("x.mtx").write_text(f"%%MatrixMarket matrix {kind}\n{head}\n1 1 1\n2 1 99999999999999999999\n")
        found, _, said = run("convert", "x.mtx", "o.zarr", "--label", "y.txt", "-q")
        assert (found, "Traceback" in said) == (3, False), (kind, said)


# --- what unpacks to a thousand times its size ---


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Within the context the process never takes `size` bytes more than at its beginning."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what it takes now
    before = of_status("VmRSS")
    yield
    assert of_status("VmHWM") - before < size


def of_status(name: str) -> int:
    """Bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def zeros(size: int, pack=zlib.compressobj) -> bytes:
    packer, piece = pack(), bytes(MB)
    return b"".join(packer.compress(piece) for _ in range(size // MB)) + packer.flush()


def test_a_chunk_of_an_h5ad_that_unpacks(run):
    stated = 400 * MB
    with h5py.File("x.h5ad", "w") as file:
        group = file.create_group("X")
        data = group.create_dataset("data", (stated,), "i1", chunks=(stated,), compression="gzip")
        data.id.write_direct_chunk((0,), zeros(stated))
        group.create_dataset("indices", (stated,), "i4", chunks=(MB,), compression="gzip")
        group["indptr"] = np.array([0, 20, 20])
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (2, 3)
        file["obs/y"] = [0.0, 1.0]
    memory = f"{of_status('VmRSS') + 300 * MB}B"  # less than the chunk takes
    with at_most(300 * MB):
        refused(run, "convert", "x.h5ad", "o.zarr", "--label", "y", "-q", "--memory", memory, code=7)


def test_text_that_unpacks(run):
    packed = {"gz": lambda: zlib.compressobj(wbits=31), "bz2": bz2.BZ2Compressor}
    for kind, pack in packed.items():
        Path(f"line.{kind}").write_bytes(zeros(100 * MB, pack))
        for given in (
            f"line.{kind} o.zarr",
            f"line.{kind} o.zarr --format vw --hash-bits 10",
            f"x.npz o.zarr --label line.{kind}",
        ):
            npz()
            with at_most(60 * MB):
                found, _, said = run("convert", *given.split(), "-q", "--memory", "400MB")
            assert found in (3, 7), said
            assert "Traceback" not in said


def test_a_bit_anywhere_in_a_matrix(run):
    for compressed in (False, True):
        npz(compressed=compressed)
        content = Path("x.npz").read_bytes()
        for place in range(0, len(content), max(1, len(content) // 40)):
            Path("x.npz").write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
            found, _, said = run("convert", "x.npz", "o.zarr", "--label", "y.txt", "-q", "--force")
            assert (found in (0, 3, 4), "Traceback" in said) == (True, False), (place, said)
