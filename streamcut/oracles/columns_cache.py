"""The row cache of a lane: copies of the rows that dual ascent may still move most, with the shares of all pairs.

Passes over the data collect them; sweeps update their shares without reading data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import columns_cache
from streamcut.compiled.column_records import Pairs, Room, Swept, listing
from streamcut.compiled.records import CachedRows, Rows
from streamcut.execution.row_cache import ROW_BYTES, CacheSize
from streamcut.foundation.rounding import Grids
from streamcut.losses.columns import ColumnsRisk

_KEPT = 0.8  # of the rows, when the cache is full: those with the smallest keys
_FULL = 0.9  # of the entries: the most that remain then
_PASS = 1.5  # entries of a sweep that cost as much as one entry of a pass
_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Settings of sweeps: at most `many`, until no column is worth another one (compiled.columns_cache.sweeps).

    entries  of all rows; rise (A): gain of the pass before; enough (A): a column's sweeps end when one gains no more than this
    seed     the number of the pass and the seed of the run
    """

    many: int
    entries: int
    rise: np.ndarray
    enough: np.ndarray
    seed: tuple[int, int]
    grids: Grids


class ColumnsCache:
    """Rows with a share for each of at most `most` columns, set by `serve`; w is (D, A).

    `limit` is the key below which rows are taken: it falls as the cache fills up.
    """

    def __init__(self, size: CacheSize, risk: ColumnsRisk, most: int) -> None:
        self.size, self._risk = size, risk
        self.n, self.limit = 0, np.inf
        indices, data = np.empty(size.entries, size.index), None if size.value is None else np.empty(size.entries, size.value)
        key, weight, square = (np.empty(size.rows) for _ in range(3))
        target = np.empty(size.rows, np.float64 if risk.labels is None else np.int32)
        numbers = np.empty(size.rows, np.int64), key, weight, square
        self._room = np.empty(size.rows * most), np.empty(size.rows * most, listing(most))
        self._rows = CachedRows(np.zeros(size.rows + 1, np.int64), indices, data, *numbers, np.empty((0, 0)), target)
        self._listed: np.ndarray = np.empty((0, 0), self._room[1].dtype)
        self._count = np.zeros(size.rows, np.int64)
        self._places: np.ndarray | None = None  # places of the rows, by ascending row number
        self.columns: Any = None

    @property
    def numbers(self) -> np.ndarray:
        """The rows in the cache, in the order in which they came."""
        return self._rows.number[: self.n]

    @staticmethod
    def row_bytes(columns: int) -> int:
        """Bytes of a cached row in addition to its entries: its target, the columns that may still move it, and its shares."""
        return ROW_BYTES + 16 + (8 + listing(columns)().itemsize) * columns

    def serve(self, columns: Any) -> None:
        """Forget all rows; the next ones have these columns (streamcut.oracles.columns_passes.Places)."""
        self.n, self.limit = 0, np.inf
        self.columns, rows, A = columns, self.size.rows, len(columns.places)  # in groups, of all their columns
        shares, listed = self._room
        self._rows = self._rows._replace(share=shares[: rows * A].reshape(rows, A))
        self._listed = listed[: rows * A].reshape(rows, A)
        self._places = None

    def collect(self, rows: Rows, pairs: Pairs, half: int, numbers: np.ndarray) -> None:
        """Cache the rows of a block with the smallest pairs.keys, with the shares in half `half` of their codes."""
        first = 0
        while first < len(numbers):
            at = first, rows, self.columns, pairs, half, numbers, self.limit, self.n
            first, self.n = columns_cache.offer(self._risk.loss, *at, self._rows, self._count, self._listed)
            if first < len(numbers):  # the cache is full
                self._shrink()

    def sweep_columns(self, how: Sweeps, w: np.ndarray, first_row: int) -> np.ndarray:
        """Sweep in place at w until a sweep no longer pays; returns the rise of the dual (A)."""
        swept = Swept.after(how.rise, _PASS * max(how.entries, 1), how.enough)
        rows = np.empty(self.n, np.int64), self._rows, self._count, self._listed, self.columns
        passes, seed = how.seed
        seeds = tuple(np.uint64(number & _BITS) for number in (passes, first_row, seed))
        vectors, room = self.columns.group.vectors(w), Room.of(0, w.shape[1])
        columns_cache.sweeps(self._risk.loss, *rows, how.grids, vectors, swept, room, how.many, seeds)
        return swept.total

    def write_codes(self, how: Sweeps, half: int, codes: np.ndarray, first_row: int, U: np.ndarray, b: np.ndarray) -> None:
        """Write the shares of cached rows to half `half` of `codes`, of the rows from `first_row` on; U and b are updated."""
        if self._places is None:  # rows may come from several places of the lane
            self._places = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + len(codes)), sorter=self._places)
        cached = self._places[first:last], self._rows, first_row, self.columns, codes, half, how.grids
        columns_cache.write_back(self._risk.loss, *cached, self.columns.group.vectors(U), b, Room.of(0, U.shape[1]))

    def gathered(self) -> CachedRows:
        """The cached rows; shares and weights are views."""
        rows, last = self._rows.part(slice(0, self.n)), self._rows.indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def _shrink(self) -> None:
        keys, ends, count, entries = self._rows.key[: self.n], self._rows.indptr[: self.n + 1], self.n, np.inf
        kept = np.ones(count, np.bool_)
        while count > 0 and entries > _FULL * len(self._rows.indices):
            count = min(int(_KEPT * count), count - 1)
            (in_order := keys.copy()).partition(count)
            self.limit = float(in_order[count])
            del in_order  # a number for each row at a time, and not while rows are marked
            np.less(keys, self.limit, out=kept)
            equal = np.flatnonzero(keys == self.limit)
            kept[equal[: count - np.count_nonzero(kept)]] = True
            entries = np.diff(ends).sum(where=kept)
        columns_cache.keep(np.flatnonzero(kept), self._rows, self._count, self._listed)
        self.n = count
