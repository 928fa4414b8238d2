"""Reordering of rows out of core: shuffled by seed, or grouped by qid.

Every row gets a 64-bit key; rows leave in the order of their keys, ties in order of arrival. The key depends only on the
seed and the number of the row (or its qid), so the result depends on nothing else, in particular not on the memory:

    pass 1: collect rows; when they take half of the memory, sort them by key and write them out as a run
    pass 2: look at the next keys of every run; rows whose key is below everything beyond them leave in order; repeat

Sorted runs rather than random buckets: their number need not be guessed before all data is read, no bucket can
overflow, and the same code groups the rows of a qid. Data that fits into the memory never touches the disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.systems import give_back
from streamcut.foundation.units import format_bytes
from streamcut.io.rows import GOLDEN, mixed, take_rows

PIECE = 1 << 16  # entries per output chunk
_ENTRIES = ("indices", "data")

Lengths = TypeVar("Lengths", int, np.ndarray)
Columns = dict[str, np.ndarray]  # key, length, y, perhaps qid and weight: one element per row; indices, data: one per entry


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
        self._room = max(memory - 2 * PIECE * 16, 0) // 2  # joining takes the longest column once more, sorting 24 bytes a row
        if os.path.lexists(folder):
            shutil.rmtree(folder)
        self.rows = self._held = 0
        self._runs: list[_Run] = []
        self._pending: dict[str, list[np.ndarray]] = {}

    def close(self) -> None:
        self._pending = {}
        with suppress(OSError):  # report the first error
            shutil.rmtree(self.folder)

    def add(self, chunk: Chunk, keys: np.ndarray) -> None:
        """Take copies of the rows of `chunk`, with their `keys` (n, uint64). Raises MemoryBudgetError, DiskFullError."""
        columns = _columns(chunk, keys)
        if (size := sum(column.nbytes for column in columns.values())) > self._room:
            if chunk.n_rows == 1:
                raise MemoryBudgetError(
                    f"row {chunk.first_row} (0-based) has {chunk.nnz:,} entries, more than fit into the "
                    f"{format_bytes(self.memory)} that --memory leaves for sorting; raise --memory"
                )
            half = chunk.n_rows // 2
            self.add(chunk.rows(0, half), keys[:half])
            self.add(chunk.rows(half, chunk.n_rows), keys[half:])
            return
        if self._held + size > self._room:
            self._flush()
        if self._pending and self._pending.keys() != columns.keys():
            raise BadInputError("some blocks of rows have qid or weight and others do not")
        for name, column in columns.items():
            self._pending.setdefault(name, []).append(column.copy())
        self._held += size
        self.rows += chunk.n_rows

    def sorted(self) -> Iterator[Chunk]:
        """All rows in order, in chunks of about PIECE entries; no rows can be added afterwards."""
        if self._runs:
            self._flush()
            yield from _merged(self._runs, self.memory)
        elif self._pending:
            yield from (chunk for chunk, _ in _in_order(self._joined()))

    def _joined(self) -> Columns:
        """All pending rows, which are pending no longer."""
        joined = {name: np.concatenate(self._pending.pop(name)) for name in list(self._pending)}
        self._held = 0
        return joined

    def _flush(self) -> None:
        path = self.folder / f"{len(self._runs):06d}"
        with disk_full(path, self._held):
            failpoint("convert.run")
            path.mkdir(parents=True)
            self._runs.append(_Run(path, self._joined()))
        give_back()


def _columns(chunk: Chunk, keys: np.ndarray) -> Columns:
    """The arrays of the rows; values that are all 1 become int8."""
    cut = slice(chunk.indptr[0], chunk.indptr[-1])
    data = np.ones(chunk.nnz, np.int8) if chunk.data is None else chunk.data[cut]
    columns = {"key": keys, "length": np.diff(chunk.indptr), "y": chunk.y, "qid": chunk.qid, "weight": chunk.weight}
    return {name: column for name, column in columns.items() if column is not None} | {
        "indices": chunk.indices[cut],
        "data": data,
    }


def _in_order(columns: Columns) -> Iterator[tuple[Chunk, np.ndarray]]:
    """The rows in the order of their keys, in chunks of about PIECE entries, each with its keys."""
    indptr = np.concatenate([[0], np.cumsum(columns["length"])]).astype(np.int64)
    rows = Chunk(indptr, columns["indices"], columns["data"], columns["y"], columns.get("qid"), columns.get("weight"))
    order, start = np.argsort(columns["key"], kind="stable"), 0
    while start < len(order):
        ahead = order[start : start + PIECE]
        ends = np.cumsum(columns["length"][ahead])
        which = ahead[: max(1, int(np.searchsorted(ends, PIECE, side="right")))]
        yield take_rows(rows, which), columns["key"][which]
        start += len(which)


class _Run:
    """Sorted rows in files, one per array. `unread`: rows that are not taken yet."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._types = path, {name: column.dtype for name, column in columns.items()}
        self.unread, self.longest = len(columns["key"]), int(columns["length"].max())
        self._next = dict.fromkeys(columns, 0)  # element of each array
        self._ahead: tuple[np.ndarray, np.ndarray] | None = None
        with ExitStack() as stack:
            files = {name: stack.enter_context(open(path / name, "wb")) for name in columns}
            for chunk, keys in _in_order(columns):
                for name, column in _columns(chunk, keys).items():
                    files[name].write(column.data)

    def row_bytes(self, lengths: Lengths) -> Lengths:
        """Bytes of rows with this many entries."""
        entry = sum(self._types[name].itemsize for name in _ENTRIES)
        return sum(dtype.itemsize for dtype in self._types.values()) - entry + lengths * entry

    def ahead(self, memory: int) -> tuple[np.ndarray, np.ndarray]:
        """(keys, entries up to each row's end) of the next rows, as many as take `memory` bytes, but at least one."""
        if self._ahead is None:  # others may be taken from other runs first
            most = min(self.unread, max(1, memory // self.row_bytes(0)))
            lengths = self._read("length", most)
            rows = max(1, int(np.searchsorted(np.cumsum(self.row_bytes(lengths)), memory, side="right")))
            self._ahead = self._read("key", min(rows, most)), np.cumsum(lengths[:rows])
        return self._ahead

    def take(self, rows: int, entries: int) -> Columns:
        """The next rows, which have this many entries."""
        taken, self._ahead = {}, None
        for name in self._types:
            count = entries if name in _ENTRIES else rows
            taken[name] = self._read(name, count)
            self._next[name] += count
        self.unread -= rows
        if not self.unread:
            shutil.rmtree(self._path, ignore_errors=True)
        return taken

    def _read(self, name: str, count: int) -> np.ndarray:
        dtype = self._types[name]
        return np.fromfile(self._path / name, dtype, count, offset=self._next[name] * dtype.itemsize)


def _merged(runs: list[_Run], memory: int) -> Iterator[Chunk]:
    """Pass 2. A quarter of `memory` is for rows that are looked at, a quarter for those that leave, the rest for copies."""
    share, longest = memory // 4 // len(runs), max(run.longest for run in runs)
    needed = 4 * sum(max(share, run.row_bytes(run.longest)) for run in runs)
    if needed > memory:
        raise MemoryBudgetError(
            f"merging {len(runs)} sorted runs with rows of up to {longest:,} entries needs {format_bytes(needed)}, "
            f"but --memory leaves {format_bytes(memory)} for it; raise --memory"
        )
    while runs := [run for run in runs if run.unread]:
        fronts = [run.ahead(share) for run in runs]
        ends = [(keys[-1], number) for number, (keys, _) in enumerate(fronts) if len(keys) < runs[number].unread]
        limit, first = min(ends, default=(None, 0))
        taken = []
        for number, (keys, entries) in enumerate(fronts):
            # Run `first` may hold more rows with the limit's key: rows with that key in later runs wait for them.
            side: Literal["left", "right"] = "right" if number <= first else "left"
            if count := len(keys) if limit is None else int(np.searchsorted(keys, limit, side=side)):
                taken.append(runs[number].take(count, int(entries[count - 1])))
        yield from (chunk for chunk, _ in _in_order({name: np.concatenate([part[name] for part in taken]) for name in taken[0]}))
