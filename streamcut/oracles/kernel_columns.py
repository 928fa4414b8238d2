"""Kernel columns over rows in memory: caches of them, scores, and how rows come into memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from streamcut.compiled import kernel_rows
from streamcut.execution.feed import Feed, RowBuffer, Traffic
from streamcut.foundation.chunk import Chunk, concatenate, take
from streamcut.io.dataset import entry_bytes, first_rows
from streamcut.io.manifest import Manifest
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors

TILE = 1 << 20  # numbers of support rows that are dense at a time, for each worker
_ENTRIES = 1 << 18  # of rows scored in memory at once


def scores_in_memory(
    kernel: Kernel, chunk: Chunk, rows: np.ndarray, support: np.ndarray, coefficients: np.ndarray, dimension: int, workers: int
) -> np.ndarray:
    """Σ_k coefficients[k] k(x_i, x_j) with j = support[k], for i in `rows`, rows of `chunk`: float64, on threads."""
    vectors = Vectors(kernel, take(chunk, support), dimension, tile=TILE, kept=False)
    out, at_once = np.zeros(len(rows)), max(_ENTRIES * chunk.n_rows // max(chunk.nnz, 1), 1)

    def add(first: int) -> None:
        some = slice(first, first + at_once)
        vectors.add_sums(take(chunk, rows[some]), coefficients, out[some])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(add, range(0, len(rows), at_once)))
    return out


class KernelColumn:
    """k(·, s) of one row s (the only one of `row`) over rows in memory."""

    def __init__(self, kernel: Kernel, row: Chunk, square: float, dimension: int) -> None:
        entries = slice(row.indptr[0], row.indptr[-1])
        self._kernel, self._square, self._dense = kernel, square, np.zeros(dimension)
        self._dense[row.indices[entries]] = 1.0 if row.data is None else row.data[entries]

    def over(self, chunk: Chunk, squares: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """The kernel values, float64, one for each of `rows` (None: for all rows of the chunk)."""
        out, squares = np.empty(chunk.n_rows if rows is None else len(rows)), squares if rows is None else squares[rows]
        entries = chunk.indptr, chunk.indices, chunk.data
        products = np.empty(kernel_rows.STRIP)
        kernel_rows.column(rows, *entries, squares, self._dense, self._square, self._kernel.compiled, products, out)
        return out


class SharedColumns:
    """Columns k(·, x_i) over all `n_rows` rows in memory, float32, shared by problems on the same rows: as many as `size` bytes
    hold, the first requested. Each is computed once."""

    def __init__(self, n_rows: int, size: int) -> None:
        self._most = size // (4 * n_rows)
        self._columns: dict[int, np.ndarray] = {}

    def of(self, row: int, compute: Callable[[], np.ndarray]) -> np.ndarray | None:
        """The column of `row`; None if it does not fit."""
        column = self._columns.get(row)
        if column is None and len(self._columns) < self._most:
            column = self._columns[row] = compute().astype(np.float32)
        return column


class KernelCache:
    """Columns of the kernel over the active rows, float32; the least recently used one is evicted.

    Memory is taken column by column, `used` so far: if all columns fit, only requested columns take memory.
    """

    def __init__(self, n_rows: int, size: int) -> None:
        self.slot_of = np.full(n_rows, -1, np.int32)
        self.stamps = np.zeros(n_rows, np.int64)
        self._size = max(size // 4, 2 * n_rows)
        self.numbers = np.empty(min(self._size, n_rows * n_rows), np.float32)
        self._owner = np.full(n_rows, -1, np.int64)
        self.used = 0
        self.resize(n_rows)

    def resize(self, width: int) -> None:
        """Set the column length to `width`; cached columns stay only if they have it."""
        self.width = width
        self._slots = min(len(self.numbers) // max(width, 1), len(self._owner))

    def clear(self, width: int) -> None:
        """Drop all columns."""
        self.slot_of[:], self.stamps[:], self._owner[:], self.used = -1, 0, -1, 0
        self.resize(width)

    def put(self, row: int, column: np.ndarray, now: int) -> None:
        """Keep the column of `row`."""
        if self.used < self._slots:
            slot, self.used = self.used, self.used + 1
        else:
            slot = int(np.argmin(self.stamps[: self._slots]))
        if self._owner[slot] >= 0:
            self.slot_of[self._owner[slot]] = -1
        self._owner[slot], self.slot_of[row], self.stamps[slot] = row, slot, now
        self.numbers[slot * self.width : (slot + 1) * self.width] = column

    def narrow(self, kept: np.ndarray) -> None:
        """Keep only the positions `kept` of all columns."""
        for slot in range(self.used):  # unwritten columns have no memory yet
            column = self.numbers[slot * self.width : (slot + 1) * self.width][kept]
            self.numbers[slot * len(kept) : (slot + 1) * len(kept)] = column
        self.resize(len(kept))


def squared_norms(chunk: Chunk) -> np.ndarray:
    """‖x_i‖² of the rows of a chunk."""
    out = np.empty(chunk.n_rows)
    kernel_rows.squared_norms(chunk.indptr, chunk.data, out)
    return out


def mean_row(chunk: Chunk, dimension: int) -> Chunk:
    """The mean of the rows of a chunk, as a chunk of one row."""
    here = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
    mean = np.bincount(chunk.indices[here], None if chunk.data is None else chunk.data[here], dimension) / chunk.n_rows
    (index,) = np.nonzero(mean)
    return Chunk(np.array([0, len(index)]), index.astype(chunk.indices.dtype), mean[index], np.zeros(1))


def fetch(feed: Feed, numbers: np.ndarray, traffic: Traffic) -> Chunk:
    """The rows `numbers` (increasing) in memory, as `take` copies them. Only shards that hold one of them are read."""
    shards, buffers = np.searchsorted(first_rows(feed.data.manifest), numbers, side="right"), feed.buffers()
    chunks: list[Chunk] = []
    for inside in np.split(numbers, np.flatnonzero(np.diff(shards)) + 1):
        for block in feed.blocks(int(inside[0]), int(inside[-1]) + 1, buffers, traffic):
            first, stop = np.searchsorted(inside, (block.first_row, block.first_row + block.n_rows))
            chunks.append(take(block, inside[first:stop] - block.first_row))
    return concatenate(chunks)


def whole_bytes(manifest: Manifest) -> int:
    """Bytes of memory that `read_whole` takes; values have a type that holds those of every shard."""
    statistics = manifest.statistics
    return entry_bytes(manifest) * statistics.nnz + 24 * (statistics.n_rows + 1)


def read_whole(feed: Feed) -> Chunk:
    """Every row of the data. Data that is already one chunk in memory is not copied."""
    manifest = feed.data.manifest
    statistics = manifest.statistics
    if feed.data.path is None and len(manifest.shards) == 1:
        return feed.data.read(0)
    rows = RowBuffer(manifest, statistics.n_rows, statistics.nnz)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), Traffic()):
        rows.add(replace(block, qid=None))
    return rows.chunk()
