"""Where rows come from: what every source offers, and which source reads which file."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.io.canonical import RawRows, RowRules, canonical
from streamcut.io.inputs import find_inputs
from streamcut.io.spec import MANIFEST
from streamcut.units import format_bytes

ENTRY_BYTES = 96  # a raw entry, its checks and its canonical form, at the peak of `canonical`
FORMATS = ("svmlight", "npz", "mtx", "anndata", "parquet", "streamcut")


class RowSource(Protocol):
    """Rows of one or several inputs, in order.

    identity  JSON: what is read; a conversion resumes only over the same
    counters  what was unusual in the rows that `blocks` gave out so far
    """

    identity: dict
    counters: dict[str, int]

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """Chunks of consecutive rows, each with the position after it: `blocks(position)` goes on from there.

        A chunk's arrays may be reused for the next one. Raises BadInputError naming the place.
        """


class TableReader(Protocol):
    """One file of `n_rows` rows that can be read from any row on; `n_features` is None when only reading would tell.

    `held_bytes` is the memory that it takes besides the rows which it gives out.
    """

    n_rows: int
    n_features: int | None
    held_bytes: int

    def rows(self, start: int, block_nnz: int) -> Iterator[RawRows]:
        """Rows from number `start` on, in pieces of at most `block_nnz` entries (see `row_ranges`)."""


class TableSource:
    """RowSource over TableReaders, one after the other. `paths` (strings) name them in messages."""

    def __init__(self, kind: str, paths: list[str], readers: list[TableReader], rules: RowRules, block_nnz: int) -> None:
        widths = {reader.n_features for reader in readers} - {None}
        if len(widths) > 1 and rules.n_features is None:
            raise BadInputError(
                f"the inputs have {', '.join(map(str, sorted(widths)))} features; say how many there are with --n-features"
            )
        self.kind, self.paths, self.readers, self.rules, self.block_nnz = kind, paths, readers, rules, block_nnz
        self.n_features = rules.n_features if rules.n_features is not None else next(iter(widths), None)
        self.identity = {"format": kind, "files": [describe(path) for path in paths]}
        self.counters: Counter[str] = Counter()
        self.total_rows = sum(reader.n_rows for reader in readers)

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        start = start or {"file": 0, "row": 0, "counters": {}}
        self.counters = Counter(start["counters"])
        first_row = sum(reader.n_rows for reader in self.readers[: start["file"]]) + start["row"]
        for number in range(start["file"], len(self.readers)):
            row = start["row"] if number == start["file"] else 0
            for raw in self.readers[number].rows(row, self.block_nnz):
                chunk = canonical(raw, self.rules, self.counters, self.paths[number], first_row, row)
                row += chunk.n_rows
                first_row += chunk.n_rows
                yield chunk, {"file": number, "row": row, "counters": dict(self.counters)}


def row_ranges(indptr: np.ndarray, block_nnz: int, where: str, first_row: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most `block_nnz` entries each. Raises MemoryBudgetError for a row that alone has more."""
    start, n = 0, len(indptr) - 1
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + block_nnz, side="right")) - 1
        if stop == start:
            entries = int(indptr[start + 1] - indptr[start])
            needed, left = format_bytes(entries * ENTRY_BYTES), format_bytes(block_nnz * ENTRY_BYTES)
            raise MemoryBudgetError(
                f"{where}: row {first_row + start} (0-based) has {entries:,} entries and needs {needed} in one piece, "
                f"but --memory leaves {left} for it; raise --memory"
            )
        yield start, stop
        start = stop


def describe(path: str) -> dict:
    """What makes a file the same file: name, bytes, time of change."""
    state = os.stat(path)
    return {"name": os.path.basename(path.rstrip("/")), "bytes": tree_bytes(path), "mtime_ns": state.st_mtime_ns}


def tree_bytes(path: str | Path) -> int:
    """Bytes of a file, or of all files below a directory."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def sniff(path: str) -> str:
    """The format of `path` (one of FORMATS), from its content; a name that says otherwise is refused.

    Raises NotFoundError, and BadInputError when the content is none of the formats.
    """
    if path == "-":
        return "svmlight"
    if "://" in path:
        return "streamcut"
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file or directory")
    if os.path.isdir(path):
        return _sniff_directory(path)
    if not os.path.isfile(path):  # a FIFO or a device cannot be looked into without losing what was read
        return "svmlight"
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except PermissionError:
        raise NotFoundError(f"{path}: permission denied") from None
    found = _sniff_head(path, head)
    expected = {".npz": "npz", ".h5ad": "anndata", ".parquet": "parquet"}.get(Path(path).suffix.lower())
    if expected and found != expected:
        raise BadInputError(
            f"{path}: the name says {expected}, the content does not (it looks like {found}); say what it is with --format"
        )
    return found


def _sniff_head(path: str, head: bytes) -> str:
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        import h5py

        with h5py.File(path, "r") as file:
            return _sniff_groups(path, set(file), dict(file.attrs))
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        if any(name.endswith(("zarr.json", ".zgroup")) for name in names):
            return "streamcut"
        return "npz"
    if head.startswith(b"%%MatrixMarket") or path.lower().endswith((".mtx", ".mtx.gz", ".mtx.bz2")):
        return "mtx"
    return "svmlight"


def _sniff_directory(path: str) -> str:
    """A Zarr group is a store or an AnnData; any other directory holds text files."""
    if os.path.exists(os.path.join(path, MANIFEST)):
        return "streamcut"
    if not any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup")):
        return "svmlight"
    import zarr

    group = zarr.open_group(path, mode="r")
    return _sniff_groups(path, {name for name in os.listdir(path) if not name.startswith(".")}, dict(group.attrs))


def _sniff_groups(path: str, members: set[str], attributes: dict) -> str:
    if "shards" in members:
        return "streamcut"
    if "X" in members or attributes.get("encoding-type") == "anndata":
        return "anndata"
    raise NotFoundError(
        f"{path}: neither a streamcut store nor an AnnData file (it holds {', '.join(sorted(members)) or 'nothing'})"
    )


def find_files(inputs: Sequence[str], wanted: str) -> tuple[str, list[str]]:
    """(format, paths) of `inputs`: stores and AnnData directories as they are, other directories and globs as their files.

    `wanted` other than "auto" decides the format. Raises NotFoundError, and UsageError for a mixture of formats.
    """
    paths: list[str] = []
    for name in inputs:
        if "://" in name or (os.path.isdir(name) and _sniff_directory(name) != "svmlight"):
            paths.append(name)
        else:
            paths += [found.name for found in find_inputs([name])]
    if wanted != "auto":
        return wanted, paths
    found = {path: sniff(path) for path in paths}
    if len(set(found.values())) > 1:
        listing = ", ".join(f"{path} ({kind})" for path, kind in list(found.items())[:6])
        raise UsageError(f"the inputs are of different formats: {listing}; convert them one format at a time, or give --format")
    return found[paths[0]], paths
