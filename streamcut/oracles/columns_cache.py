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
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, joined_seed, shuffle_rows
from streamcut.foundation.rounding import Grids
from streamcut.losses.columns import ColumnsRisk

_KEPT = 0.8  # of the rows, when the cache is full: those with the smallest keys
_FULL = 0.9  # of the entries: the most that remain then
_PASS = 1.5  # entries of a sweep that cost as much as one entry of a pass
_NEXT = 0.15  # of the gain of a pass: the expected gain of the next
_SLACK = 0.1  # of the largest violation of a sweep: pairs at a bound and further from leaving it wait for the next pass


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Settings of sweeps: at most `many`, until no column is worth another one (Worth).

    entries  of all rows; rise (A): gain of the pass before; enough (A): a column's sweeps end when one gains no more than this
    seed     the number of the pass and the seed of the run
    """

    many: int
    entries: int
    rise: np.ndarray
    enough: np.ndarray
    seed: tuple[int, int]
    grids: Grids


@dataclass(slots=True)
class Worth:
    """The rise of the dual since a pass began, and the work done: counted, hence the same on any machine.

    Each sweep after a pass gains less than the one before. A new pass is the better choice once a sweep gains less for its work
    than a pass and its sweeps do on average: the marginal value theorem (Charnov 1976). The gain of the next ones
    is less than half of the present gain: sweeps feed the momentum of the next passes, and independent lanes spoil much of a
    pass's gain.

    rise    of the dual (units of F); of several problems (A)
    work    entries visited
    enough  sweeps end in any case when one gains no more than this
    """

    rise: Any
    work: float
    enough: Any

    @classmethod
    def after(cls, entries: int, rise: Any, enough: Any) -> Worth:
        """A pass over `entries` with this rise of the dual."""
        return cls(np.maximum(rise, 0.0), _PASS * max(entries, 1), enough)

    def goes_on(self, rise: Any, work: Any) -> Any:
        """Whether another sweep follows one that brought `rise`; of several problems (A)."""
        self.rise, self.work = self.rise + rise, self.work + work
        return (rise > self.enough) & (rise > _NEXT * self.rise / self.work * work)


class ColumnsCache:
    """Rows with a share for each of at most `most` columns, set by `serve`; w is (D, A).

    `limit` is the key below which rows are taken: it falls as the cache fills up.
    """

    def __init__(self, size: CacheSize, risk: ColumnsRisk, most: int) -> None:
        self.size, self._risk = size, risk
        self.n, self.limit = 0, np.inf
        self._indptr = np.zeros(size.rows + 1, np.int64)
        self._indices = np.empty(size.entries, size.index)
        self._data = None if size.value is None else np.empty(size.entries, size.value)
        self._number = np.empty(size.rows, np.int64)
        self._key, self._weight, self._square = (np.empty(size.rows) for _ in range(3))
        self._goal = np.empty(size.rows, np.float64 if risk.labels is None else np.int32)
        self._room = np.empty(size.rows * most), np.empty(size.rows * most, listing(most))
        self._share: np.ndarray = np.empty((0, 0))
        self._listed: np.ndarray = np.empty((0, 0), self._room[1].dtype)
        self._count = np.zeros(size.rows, np.int64)
        self._places: np.ndarray | None = None  # places of the rows, by ascending row number
        self.columns: Any = None

    @property
    def numbers(self) -> np.ndarray:
        """The rows in the cache, in the order in which they came."""
        return self._number[: self.n]

    @staticmethod
    def row_bytes(columns: int) -> int:
        """Bytes of a cached row in addition to its entries: its target, the columns that may still move it, and its shares."""
        return ROW_BYTES + 16 + (8 + listing(columns)().itemsize) * columns

    def serve(self, columns: Any) -> None:
        """Forget all rows; the next ones have these columns (streamcut.oracles.columns_passes.Places)."""
        self.n, self.limit = 0, np.inf
        self.columns, rows, A = columns, self.size.rows, len(columns.places)  # in groups, of all their columns
        shares, listed = self._room
        self._share, self._listed = shares[: rows * A].reshape(rows, A), listed[: rows * A].reshape(rows, A)
        self._places = None

    def collect(self, rows: Rows, pairs: Pairs, half: int, numbers: np.ndarray) -> None:
        """Cache the rows of a block with the smallest pairs.keys, with the shares in half `half` of their codes."""
        first = 0
        while first < len(numbers):
            at = first, rows, self.columns, pairs, half, numbers, self.limit, self.n
            first, self.n = columns_cache.offer(self._risk.loss, *at, self._rows(), self._count, self._listed)
            if first < len(numbers):  # the cache is full
                self._shrink()

    def sweep_columns(self, how: Sweeps, w: np.ndarray, first_row: int) -> np.ndarray:
        """Sweep in place at w until a sweep no longer pays; returns the rise of the dual (A)."""
        A = len(self.columns.cost)
        worth = Worth.after(how.entries, how.rise, how.enough)
        on, slack, turns, total = np.ones(A, np.bool_), np.full(A, np.inf), np.flatnonzero(self._count[: self.n]), np.zeros(A)
        lists, room = (self._rows(), self._count, self._listed, self.columns), Room.of(0, w.shape[1])
        w = self.columns.group.vectors(w)
        for number in range(how.many):
            if len(turns) == 0 or not on.any():
                break
            shuffle_rows(turns, int(self._indptr[self.n]), self.n, joined_seed(how.seed[0], number, first_row, how.seed[1]))
            swept = Swept(np.zeros(A), np.zeros(A), np.zeros(A))
            left = columns_cache.sweep(self._risk.loss, turns, *lists, on, slack, how.grids, w, swept, room)
            turns, slack, total = turns[:left], _SLACK * swept.largest, total + swept.gain
            on &= worth.goes_on(swept.gain, swept.work)
        return total

    def write_codes(self, how: Sweeps, half: int, codes: np.ndarray, first_row: int, U: np.ndarray, b: np.ndarray) -> None:
        """Write the shares of cached rows to half `half` of `codes`, of the rows from `first_row` on; U and b are updated."""
        if self._places is None:  # rows may come from several places of the lane
            self._places = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + len(codes)), sorter=self._places)
        given = self._places[first:last], self._rows(), first_row, self.columns, codes, half, how.grids
        columns_cache.write_back(self._risk.loss, *given, self.columns.group.vectors(U), b, Room.of(0, U.shape[1]))

    def gathered(self) -> CachedRows:
        """The cached rows; shares and weights are views."""
        rows, last = self._rows().part(slice(0, self.n)), self._indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def _rows(self) -> CachedRows:
        csr = self._indptr, self._indices, self._data
        return CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._goal)

    def _shrink(self) -> None:
        keys, ends, count, entries = self._key[: self.n], self._indptr[: self.n + 1], self.n, np.inf
        kept = np.ones(count, np.bool_)
        while count > 0 and entries > _FULL * len(self._indices):
            count = min(int(_KEPT * count), count - 1)
            (in_order := keys.copy()).partition(count)
            self.limit = float(in_order[count])
            del in_order  # a number for each row at a time, beside which rows are marked
            np.less(keys, self.limit, out=kept)
            equal = np.flatnonzero(keys == self.limit)
            kept[equal[: count - np.count_nonzero(kept)]] = True
            entries = np.diff(ends).sum(where=kept)
        columns_cache.keep(np.flatnonzero(kept), self._rows(), self._count, self._listed)
        self.n = count
