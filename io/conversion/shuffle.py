"""Reordering of rows out of core: shuffled by seed, or grouped by qid.

Every row gets a 64-bit key; rows leave in the order of their keys, ties in order of arrival. The key depends only on the
seed and the number of the row (or its qid), so the result depends on nothing else, in particular not on the memory:

    pass 1: collect rows; when they take half of the memory, sort them by key and write them out as a run
    pass 2: load the front of every run; rows whose key is below everything still unread leave in order; top up, repeat

Sorted runs rather than random buckets: their number need not be guessed before the size of the data is known, no bucket can
overflow, and the same code groups the rows of a qid. Data that fits into the memory never touches the disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.systems import give_back
from streamcut.foundation.units import format_bytes
from streamcut.io.rows import GOLDEN, mixed, take_rows

PIECE = 1 << 16  # entries per output chunk
_ENTRIES = ("indices", "data")

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
        if (size := _bytes(columns)) > self._room:
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
            yield from (chunk for chunk, _ in _merged(self._runs, self.memory))
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


def _bytes(columns: Columns) -> int:
    return sum(column.nbytes for column in columns.values())


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
    """Sorted rows in files, one per array, and the part of the rows that is loaded."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.types = path, {name: column.dtype for name, column in columns.items()}
        self.unread, self.longest = len(columns["key"]), int(columns["length"].max())
        self.shortest, self.largest = self.row_bytes(np.array([0, self.longest])).tolist()  # bytes of rows
        self._next = dict.fromkeys(columns, 0)  # element of each array to load next
        self.block = {name: np.empty(0, dtype) for name, dtype in self.types.items()}
        with ExitStack() as stack:
            files = {name: stack.enter_context(open(path / name, "wb")) for name in columns}
            for chunk, keys in _in_order(columns):
                for name, column in _columns(chunk, keys).items():
                    files[name].write(column.data)

    def row_bytes(self, lengths: np.ndarray) -> np.ndarray:
        """Bytes of rows with this many entries, int64."""
        entry = sum(self.types[name].itemsize for name in _ENTRIES)
        return sum(dtype.itemsize for dtype in self.types.values()) - entry + lengths * entry

    def top_up(self, memory: int) -> None:
        """If less than half of that is loaded, load rows until the block holds about `memory` bytes, at least one row."""
        have = _bytes(self.block)
        if not self.unread or have > memory // 2:
            return
        most = min(self.unread, max(1, (memory - have) // self.shortest))
        lengths = self._read("length", most)
        rows = max(1, int(np.searchsorted(np.cumsum(self.row_bytes(lengths)), memory - have, side="right")))
        entries = int(lengths[:rows].sum())
        for name in self.types:
            count = entries if name in _ENTRIES else rows
            self.block[name] = np.concatenate([self.block[name], self._read(name, count)])
            self._next[name] += count
        self.unread -= rows
        if not self.unread:
            shutil.rmtree(self.path, ignore_errors=True)

    def take(self, rows: int) -> Columns:
        """The first `rows` loaded rows, removed from the block."""
        entries = int(self.block["length"][:rows].sum())
        cut = {name: entries if name in _ENTRIES else rows for name in self.block}
        taken = {name: column[: cut[name]] for name, column in self.block.items()}
        self.block = {name: column[cut[name] :] for name, column in self.block.items()}
        return taken

    def _read(self, name: str, count: int) -> np.ndarray:
        dtype = self.types[name]
        return np.fromfile(self.path / name, dtype, count, offset=self._next[name] * dtype.itemsize)


def _merged(runs: list[_Run], memory: int) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Pass 2. A quarter of `memory` holds the fronts of the runs, a quarter the rows leaving them, the rest copies on the way."""
    share = memory // 4 // len(runs)
    needed = 4 * sum(max(share, run.largest) for run in runs)
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
        yield from _in_order({name: np.concatenate([part[name] for part in taken]) for name in taken[0]})
