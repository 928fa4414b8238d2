"""Endless wrong files for the readers of matrices, models and checkpoints: single bits, and lies of types, shapes, links, flags.

`bits` and `lies` are fuzzers as those of fuzzing.py are. No file outside may be opened: the kernel is asked, and a pipe lies
there that would block who opens it.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse as sp

from streamcut.errors import StreamcutError

REFUSED = (3, 4, 5, 7)
_SECONDS = 20
X = sp.csr_matrix(np.random.default_rng(0).integers(0, 3, (30, 7)).astype(np.float64))


def _outcome(read: Callable[[], Any]) -> str:
    """`taken`, or by what sentence it was refused. Any other error is a finding, and so is one that takes long."""
    signal.alarm(_SECONDS)
    try:
        read()
        return "taken"
    except StreamcutError as error:
        refused = error
    except MemoryError:
        return "refused (7)"
    finally:
        signal.alarm(0)
    assert refused.exit_code in REFUSED, refused
    assert len(str(refused)) < 2000, refused
    return f"refused ({int(refused.exit_code)})"


# --- lies ---


def _lying(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """The array, of another type, shape or range."""
    while True:
        with suppress(ValueError, TypeError, OverflowError):  # a type that holds no such values
            return _changed(rng, array)


def _changed(rng: random.Random, array: np.ndarray) -> np.ndarray:
    kinds = ["?", "i1", "u1", ">i4", "i8", "u8", "f2", "f4", ">f8", "c16", "S3", "U2", "M8[s]", "m8[ns]", "O", "V4"]
    flat = np.array(array).reshape(-1)
    what = rng.randrange(8)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if what <= 1:
            return flat.astype(rng.choice(kinds[:-1])) if rng.random() < 0.9 else np.zeros(len(flat), "V4")
        if what == 2:
            return flat[: rng.randrange(len(flat) + 1)]
        if what == 3:
            return np.concatenate([flat, flat])
        if what == 4:
            return flat.reshape(-1, 1) if rng.random() < 0.5 else flat.reshape(1, -1)
        if what == 5:
            return flat[rng.randrange(len(flat))] if len(flat) else np.array(0)
        flat = flat.astype(rng.choice(["i8", "f8", "u8"]))
        if len(flat):
            odd = [-1, -(2**63), 2**63 - 1, 2**31, 0.5, np.nan, np.inf, 10**9, 0]
            value = rng.choice(odd) if flat.dtype.kind != "u" else rng.choice([2**63 + 5, 2**64 - 1, 2**32])
            flat[rng.randrange(len(flat))] = value if flat.dtype.kind != "i" or np.isfinite(value) else 0
        return flat


def _npz(rng: random.Random, path: Path) -> None:
    layout = rng.choice(["csr", "csc", "coo"])
    sp.save_npz(path, X.asformat(layout), compressed=rng.random() < 0.5)
    with np.load(path) as archive:
        arrays = dict(archive)
    what = rng.randrange(4)
    if what <= 1:
        name = rng.choice(list(arrays))
        arrays[name] = _lying(rng, arrays[name])
    elif what == 2:
        arrays.pop(rng.choice(list(arrays)))
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(path, **arrays)
    if what == 3:
        content = bytearray(path.read_bytes())
        magic, offsets = rng.choice([(b"PK\x03\x04", (6, 8, 14, 18, 22, 26)), (b"PK\x01\x02", (8, 10, 16, 20, 24, 28, 30, 42))])
        at = content.find(magic)
        for _ in range(rng.randrange(3)):
            at = max(content.find(magic, at + 1), at)
        at += rng.choice(offsets)
        content[at : at + 2] = struct.pack("<H", rng.choice([0, 1, 8, 0x20, 0x40, 0x2000, 12, 14, 97, 99, 0xFFFF]))
        path.write_bytes(content)


def _hdf5(rng: random.Random, path: Path, kind: str, outside: Path) -> None:
    layout = rng.choice(["csr", "csc"]) if kind == "h5ad" else "csr"
    matrix = X.asformat(layout)
    root = "X" if kind == "h5ad" else "matrix"
    arrays: dict[str, Any] = {f"{root}/{name}": getattr(matrix, name) for name in ("data", "indices", "indptr")}
    if kind == "h5ad":
        arrays |= {"obs/y": np.arange(30) % 2, "obs/z/codes": np.arange(30, dtype="i1") % 2, "obs/z/categories": [b"a", b"b"]}
        arrays |= {"var/_index": [b"x"] * 7, "uns/a": [1]}
    else:
        arrays |= {"matrix/shape": X.shape[::-1], "matrix/barcodes": [b"x"] * 30}
        arrays |= {"matrix/features/id": [b"i"] * 7, "matrix/features/name": [b"n"] * 7}
    shape: Any = X.shape
    what, name = rng.randrange(3), rng.choice(list(arrays))
    if what == 0:
        arrays[name] = _lying(rng, np.asarray(arrays[name]))
    elif what == 1 and kind == "h5ad":
        shape = _lying(rng, np.array(shape))
    with h5py.File(path, "w") as file:
        for member, values in arrays.items():
            if getattr(values, "dtype", np.dtype(int)).kind in "UMmOV":
                values = np.asarray([str(value) for value in values.reshape(-1)] or ["a"], "S8")
            file[member] = values
        if kind == "h5ad":
            file["X"].attrs["encoding-type"] = rng.choice([f"{layout}_matrix"] * 8 + ["array", "csr", "coo", ""])
            file["X"].attrs["shape"] = shape if np.asarray(shape).dtype.kind not in "UMmOV" else [1.5, 2]
        if what == 2:
            member = rng.choice([name, name.rpartition("/")[0] or name, "uns", "more", "layers"])
            _leading_out(rng, file, member, outside)


def _leading_out(rng: random.Random, file: h5py.File, member: str, outside: Path) -> None:
    if member in file:
        del file[member]
    target, how = outside / rng.choice(["private.h5", "pipe", "missing"]), rng.randrange(5)
    if how == 0:
        file[member] = h5py.ExternalLink(target, "/X")
    elif how == 1:
        file[member] = h5py.SoftLink(rng.choice(["/X", "/uns", f"/{member}", "/nowhere"]))
    elif how == 2:
        file.create_dataset(member, (30,), "i1", external=[(target, 0, 30)])
    else:
        many = (None,) if how == 3 else (30,)
        view = h5py.VirtualLayout((30,), "i1", maxshape=many)
        source = h5py.VirtualSource(target, "X", (30,), "i1", maxshape=many)
        cut = slice(None, h5py.h5s.UNLIMITED) if how == 3 else slice(None)
        view[cut] = source[cut]
        file.create_virtual_dataset(member, view)


def _text(rng: random.Random, path: Path) -> None:
    """A MatrixMarket file."""
    numbers = ["1", "2", "7", "30", "0", "-1", "1.5", "nan", "1e400", "9" * 30, "x", ""]
    kind = " ".join(rng.choice(words) for words in (
        ["matrix", "matrix", "vector", ""], ["coordinate", "coordinate", "array", "x"],
        ["real", "integer", "pattern", "complex", "unsigned-integer"], ["general", "symmetric", "hermitian", "skew-symmetric"],
    ))  # fmt: skip
    lines = [" ".join(rng.choice(numbers) for _ in range(rng.choice([2, 3, 3, 4]))) for _ in range(rng.randrange(6))]
    path.write_text(f"%%MatrixMarket {kind}\n" + "\n".join(lines) + "\n")


def _npy(rng: random.Random, path: Path) -> None:
    np.save(path, _lying(rng, X.toarray()), allow_pickle=True)
    content = bytearray(path.read_bytes())
    if rng.random() < 0.5:
        content[rng.randrange(min(128, len(content)))] = rng.randrange(256)
    path.write_bytes(content)


@contextmanager
def _private(folder: Path) -> Iterator[None]:
    """A file that nobody may open, and a pipe that would block."""
    folder.mkdir(exist_ok=True)
    with h5py.File(folder / "private.h5", "w") as file:
        file["X"] = np.full(30, 77, "i1")
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    yield
