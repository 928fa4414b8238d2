"""The row cache of a lane for K columns: rows with the shares of all pairs, which sweeps update without reading data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import columns_cache
from streamcut.compiled.column_records import Changed, Pairs, RowRoom, Swept
from streamcut.compiled.records import CachedRows, Rows
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache, joined_seed
from streamcut.foundation.rounding import Grids
from streamcut.losses.columns import ColumnsRisk
from streamcut.oracles.worth import Worth

_SLACK = 0.1  # of the largest violation of a sweep: pairs at a bound and further from leaving it wait for the next pass


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Settings of sweeps: at most `many`, until no column is worth another one (streamcut.oracles.worth).

    entries  of all rows; rise (A): gain of the pass before; enough (A): a column's sweeps end when one gains no more than this
    seed     the number of the pass and the seed of the run
    """

    many: int
    entries: int
    rise: np.ndarray
    enough: np.ndarray
    part: float
    seed: tuple[int, int]
    grids: Grids


def _listing(columns: int) -> type[np.signedinteger]:
    """The type of the numbers of listed columns."""
    return np.int16 if columns <= 1 << 15 else np.int32


class ColumnsCache(RowCache):
    """Rows with a share for each of at most `most` columns, set by `serve`; w is (D, A)."""

    def __init__(self, size: CacheSize, risk: ColumnsRisk, most: int) -> None:
        super().__init__(size)
        self._risk = risk
        self._goal = np.empty(size.rows, np.float64 if risk.labels is None else np.int32)
        self._room = np.empty(size.rows * most), np.empty(size.rows * most, _listing(most))
        self._share: np.ndarray = np.empty((0, 0))
        self._listed: np.ndarray = np.empty((0, 0), self._room[1].dtype)
        self._count = np.zeros(size.rows, np.int64)
        self._places: np.ndarray | None = None  # places of the rows, by ascending row number
        self.columns: Any = None

    @staticmethod
    def row_bytes(columns: int) -> int:
        """Bytes of a cached row in addition to its entries: its target, the columns that may still move it, and its shares."""
        return ROW_BYTES + 16 + (8 + _listing(columns)().itemsize) * columns

    def serve(self, columns: Any) -> None:
        """Set the columns (streamcut.oracles.columns_passes.Places); the cache must be empty."""
        self.columns, rows, A = columns, self.size.rows, len(columns.places)  # in groups, of all their columns
        shares, listed = self._room
        self._share, self._listed = shares[: rows * A].reshape(rows, A), listed[: rows * A].reshape(rows, A)
        self._places = None

    def collect(self, rows: Rows, pairs: Pairs, half: int, numbers: np.ndarray) -> None:
        """Cache the rows of a block with the smallest pairs.keys, with the shares in half `half` of their codes."""

        def offered(first: int, limit: float, n: int) -> tuple[int, int]:
            given = self._risk.loss, first, rows, self.columns, pairs, half, numbers, limit, n
            return columns_cache.offer(*given, self._rows(), self._count, self._listed)

        self.fill(offered, len(numbers))

    def sweep_columns(self, how: Sweeps, w: np.ndarray, first_row: int) -> np.ndarray:
        """Sweep in place at w until a sweep no longer pays; returns the rise of the dual (A)."""
        A = len(self.columns.cost)
        worth = Worth.after(how.entries, how.rise, how.enough, how.part)
        on, slack, turns, total = np.ones(A, np.bool_), np.full(A, np.inf), np.flatnonzero(self._count[: self.n]), np.zeros(A)
        lists, room = (self._rows(), self._count, self._listed, self.columns), RowRoom.of(w.shape[1])
        w = self.columns.group.vectors(w)
        for number in range(how.many):
            if len(turns) == 0 or not on.any():
                break
            self._order = turns
            self._shuffle(joined_seed(how.seed[0], number, first_row, how.seed[1]))
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
        columns_cache.write_back(self._risk.loss, *given, Changed(self.columns.group.vectors(U), b), RowRoom.of(U.shape[1]))

    def gathered(self) -> CachedRows:
        """The cached rows; shares and weights are views."""
        rows, last = self._rows().part(slice(0, self.n)), self._indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def _rows(self) -> CachedRows:
        csr = self._indptr, self._indices, self._data
        return CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._goal)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), self._share, self._goal, self._count, self._listed
