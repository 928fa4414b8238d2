"""Reordering of rows out of core: shuffled by seed, or grouped by qid.

Every row gets a 64-bit key; rows leave in the order of their keys, ties in order of arrival. The key depends only on the
seed and the number of the row (or its qid), so the result depends on nothing else, in particular not on the memory:

    pass 1: fill a buffer with rows; when it is full, sort it by key and write it out as a run
    pass 2: load the front of every run; rows whose key is below everything still unread leave in order; top up, repeat

Sorted runs rather than random buckets: their number need not be guessed before the size of the data is known, no bucket can
overflow, and the same code groups the rows of a qid. Data that fits into the buffer never touches the disk.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamcut.errors import MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.opened import regular
from streamcut.foundation.units import format_bytes
from streamcut.io.rows import GOLDEN, mixed, take_rows

PIECE = 1 << 18  # entries per output chunk
_ROW_ARRAYS = ("key", "length", "y", "qid", "weight")


def random_keys(seed: int, numbers: np.ndarray, stream: int = 0) -> np.ndarray:
    """uint64 keys of `numbers` (n, whole numbers): a bijection for each `seed` and `stream`, so distinct numbers never tie."""
    constants = mixed(mixed(np.array([seed % 2**64, stream], np.uint64)) + np.uint64(GOLDEN))
    return mixed(mixed(np.asarray(numbers).astype(np.uint64) + constants[0]) ^ constants[1])


class ExternalSort:
    """Sorts rows by key, with `memory` bytes in both passes.

    `folder` for runs is made on demand and removed by `close`; what an earlier process left there is removed at once.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        self.folder, self.memory = folder, memory
        if os.path.lexists(folder):
            shutil.rmtree(folder)
        self.rows = 0
        self._runs: list[_Run] = []
        self._buffer: _Buffer | None = None

    def __enter__(self) -> ExternalSort:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._buffer = None
        with suppress(OSError):  # report the first error
            shutil.rmtree(self.folder)

    def add(self, chunk: Chunk, keys: np.ndarray) -> None:
        """Take copies of the rows of `chunk`, with their `keys` (n, uint64). Raises MemoryBudgetError, DiskFullError."""
        done = 0
        while done < chunk.n_rows:
            if self._buffer is None or not self._buffer.takes(chunk):
                self._flush()
                self._buffer = _Buffer(chunk, self.memory)
            taken = self._buffer.add(chunk.rows(done, chunk.n_rows), keys[done:])
            done += taken
            if taken == 0:
                if self._buffer.n_rows == 0:
                    entries = int(chunk.indptr[done + 1] - chunk.indptr[done])
                    raise MemoryBudgetError(
                        f"row {chunk.first_row + done} (0-based) has {entries:,} entries, more than fit into the "
                        f"{format_bytes(self.memory)} that --memory leaves for sorting; raise --memory"
                    )
                self._flush()
        self.rows += chunk.n_rows

    def sorted(self) -> Iterator[Chunk]:
        """All rows in order, in chunks of about PIECE entries; no rows can be added afterwards."""
        if not self._runs:
            if self._buffer is not None:
                yield from self._buffer.sorted()
            return
        self._flush()
        self._buffer = None
        yield from _merged(self._runs, self.memory)

    def _flush(self) -> None:
        if self._buffer is None or self._buffer.n_rows == 0:
            return
        path = self.folder / f"{len(self._runs):06d}"
        with disk_full(path, self._buffer.used_bytes):
            failpoint("convert.run")
            path.mkdir(parents=True)
            self._runs.append(_Run.write(path, self._buffer.sorted(), self._buffer.keys_sorted()))
        self._buffer.clear()


class _Buffer:
    """Memory for the rows of a run, allocated once. `like` gives the types and, by its mean row length, rows per entry."""

    def __init__(self, like: Chunk, memory: int) -> None:
        value = np.dtype(np.int8) if like.data is None else like.data.dtype
        self.names = [name for name in ("y", "qid", "weight") if getattr(like, name) is not None]
        row_bytes = 8 * (5 + len(self.names))  # key, start, and three more arrays while sorting
        entry_bytes = like.indices.dtype.itemsize + value.itemsize
        memory -= 2 * PIECE * entry_bytes
        mean = max(1.0, like.nnz / max(1, like.n_rows))
        rows = max(1, int(memory / (row_bytes + mean * entry_bytes)))
        entries = max(1, int((memory - rows * row_bytes) // entry_bytes))
        self.key = np.empty(rows, np.uint64)
        self.indptr = np.zeros(rows + 1, np.int64)
        self.columns = {name: np.empty(rows, getattr(like, name).dtype) for name in self.names}
        self.indices = np.empty(entries, like.indices.dtype)
        self.data = np.empty(entries, value)
        self.n_rows = 0

    @property
    def used_bytes(self) -> int:
        nnz = int(self.indptr[self.n_rows])
        return self.n_rows * 8 * (2 + len(self.names)) + nnz * (self.indices.itemsize + self.data.itemsize)

    def clear(self) -> None:
        self.n_rows = 0

    def takes(self, chunk: Chunk) -> bool:
        """Whether the types of `chunk` fit into these arrays."""
        value = np.dtype(np.int8) if chunk.data is None else chunk.data.dtype
        same = all((getattr(chunk, name) is None) == (name not in self.names) for name in ("qid", "weight"))
        return same and np.can_cast(chunk.indices.dtype, self.indices.dtype) and np.can_cast(value, self.data.dtype)

    def add(self, chunk: Chunk, keys: np.ndarray) -> int:
        """Copy as many rows as fit from the front of `chunk`; returns their number."""
        n, nnz = self.n_rows, int(self.indptr[self.n_rows])
        fits = int(np.searchsorted(chunk.indptr, chunk.indptr[0] + len(self.indices) - nnz, side="right")) - 1
        fits = min(fits, len(self.key) - n)
        if fits <= 0:
            return 0
        piece = chunk.rows(0, fits)
        source, target = slice(piece.indptr[0], piece.indptr[-1]), slice(nnz, nnz + piece.nnz)
        self.key[n : n + fits] = keys[:fits]
        self.indptr[n + 1 : n + fits + 1] = piece.indptr[1:] + (nnz - piece.indptr[0])
        for name, column in self.columns.items():
            column[n : n + fits] = getattr(piece, name)
        self.indices[target] = piece.indices[source]
        self.data[target] = 1 if piece.data is None else piece.data[source]
        self.n_rows += fits
        return fits

    def keys_sorted(self) -> np.ndarray:
        return np.sort(self.key[: self.n_rows])

    def sorted(self) -> Iterator[Chunk]:
        order = np.argsort(self.key[: self.n_rows], kind="stable")
        columns = {name: column[: self.n_rows] for name, column in self.columns.items()}
        rows = Chunk(
            self.indptr[: self.n_rows + 1], self.indices, self.data, columns["y"], columns.get("qid"), columns.get("weight")
        )
        yield from _in_order(order, rows)


def _in_order(order: np.ndarray, rows: Chunk) -> Iterator[Chunk]:
    """Rows `order` of `rows` in chunks of about PIECE entries."""
    start = 0
    while start < len(order):
        ahead = order[start : start + PIECE]
        ends = np.cumsum(rows.indptr[ahead + 1] - rows.indptr[ahead])
        count = max(1, int(np.searchsorted(ends, PIECE, side="right")))
        yield take_rows(rows, ahead[:count])
        start += count


@dataclass(slots=True)
class _Run:
    """Sorted rows in files, one per array, and the part of the rows that is loaded."""

    path: Path
    types: dict[str, np.dtype]
    n_rows: int
    longest: int  # entries of the longest row
    read_rows: int = 0
    read_entries: int = 0
    block: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def write(cls, path: Path, chunks: Iterator[Chunk], keys: np.ndarray) -> _Run:
        types, rows, longest = {"key": keys.dtype}, 0, 0
        files: dict[str, io.FileIO] = {}
        try:
            files["key"] = open(path / "key", "wb", buffering=0)  # noqa: SIM115  closed below, all together
            _write(files["key"], keys)
            for chunk in chunks:
                lengths = np.diff(chunk.indptr)
                arrays = {"length": lengths} | {name: getattr(chunk, name) for name in ("indices", "data", "y", "qid", "weight")}
                for name, array in arrays.items():
                    if array is None:
                        continue
                    if name not in files:
                        files[name] = open(path / name, "wb", buffering=0)  # noqa: SIM115
                        types[name] = array.dtype
                    _write(files[name], array)
                rows += chunk.n_rows
                longest = max(longest, int(lengths.max()))
        finally:
            for file in files.values():
                file.close()
        return cls(path, types, rows, longest)

    @property
    def unread(self) -> bool:
        return self.read_rows < self.n_rows

    @property
    def entry_bytes(self) -> int:
        return self.types["indices"].itemsize + self.types["data"].itemsize

    @property
    def row_bytes(self) -> int:
        return sum(self.types[name].itemsize for name in _ROW_ARRAYS if name in self.types)

    def top_up(self, memory: int) -> None:
        """If less than half of that is loaded, load rows until the block holds about `memory` bytes, at least one row."""
        have = sum(array.nbytes for array in self.block.values())
        if not self.unread or have > memory // 2:
            return
        rows = min(self.n_rows - self.read_rows, max(1, (memory - have) // self.row_bytes))
        lengths = self._read("length", self.read_rows, rows)
        sizes = np.cumsum(lengths) * self.entry_bytes + np.arange(1, rows + 1) * self.row_bytes
        rows = max(1, int(np.searchsorted(sizes, memory - have, side="right")))
        entries = int(lengths[:rows].sum())
        new = {name: self._read(name, self.read_rows, rows) for name in _ROW_ARRAYS if name in self.types}
        new |= {name: self._read(name, self.read_entries, entries) for name in ("indices", "data")}
        self.block = {name: np.concatenate([self.block[name], new[name]]) for name in new} if self.block else new
        self.read_rows += rows
        self.read_entries += entries
        if not self.unread:
            shutil.rmtree(self.path, ignore_errors=True)

    def take(self, rows: int) -> dict[str, np.ndarray]:
        """The first `rows` loaded rows, removed from the block."""
        entries = int(self.block["length"][:rows].sum())
        cut = {name: entries if name in ("indices", "data") else rows for name in self.block}
        taken = {name: array[: cut[name]] for name, array in self.block.items()}
        self.block = {name: array[cut[name] :] for name, array in self.block.items()}
        return taken

    def _read(self, name: str, start: int, count: int) -> np.ndarray:
        dtype = self.types[name]
        found = np.fromfile(regular(self.path / name), dtype, count, offset=start * dtype.itemsize)
        if len(found) != count:
            raise OSError(f"{self.path / name}: the scratch file is shorter than it was written")
        return found


def _write(file: io.FileIO, array: np.ndarray) -> None:
    """All of `array`; unlike ndarray.tofile, a full disk is reported as such."""
    view = array.view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def _merged(runs: list[_Run], memory: int) -> Iterator[Chunk]:
    """Pass 2. A quarter of `memory` holds the fronts of the runs, a quarter the rows leaving them, the rest copies on the way."""
    share = memory // 4 // len(runs)
    needed = 4 * sum(max(share, run.longest * run.entry_bytes + run.row_bytes) for run in runs)
    if needed > memory:
        longest = max(run.longest for run in runs)
        raise MemoryBudgetError(
            f"merging {len(runs)} sorted runs with rows of up to {longest:,} entries needs {format_bytes(needed)}, "
            f"but --memory leaves {format_bytes(memory)} for it; raise --memory"
        )
    while True:
        for run in runs:
            run.top_up(share)
        open_ends = [(run.block["key"][-1], number) for number, run in enumerate(runs) if run.unread]
        limit, first = min(open_ends, default=(None, 0))
        taken = []
        for number, run in enumerate(runs):
            keys = run.block["key"]
            # Run `first` may hold unread rows with the limit's key: rows with that key in later runs wait for them.
            count = len(keys)
            if limit is not None:
                count = int(np.searchsorted(keys, limit, side="right" if number <= first else "left"))
            if count:
                taken.append(run.take(count))
        if not taken:
            return
        parts = {name: np.concatenate([part[name] for part in taken]) for name in taken[0]}
        del taken
        indptr = np.concatenate([[0], np.cumsum(parts["length"])]).astype(np.int64)
        rows = Chunk(indptr, parts["indices"], parts["data"], parts["y"], parts.get("qid"), parts.get("weight"))
        yield from _in_order(np.argsort(parts["key"], kind="stable"), rows)
