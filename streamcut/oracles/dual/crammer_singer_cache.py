"""The row cache of a lane for K classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled import cached_rows, multiclass_cache
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache
from streamcut.rounding import Grids


def row_bytes(classes: int) -> int:
    """Of a cached row beside its entries: its class, and its shares before and after a sweep."""
    return ROW_BYTES + 8 + 16 * classes


class ClassesCache(RowCache):
    """Rows with a share for each of `classes`; w is (D, K) flat, what they add to is (2, D, K)."""

    def __init__(self, size: CacheSize, classes: int) -> None:
        super().__init__(size)
        self._goal = np.empty(size.rows, np.int64)
        self._share, self._before = np.empty((size.rows, classes)), np.empty((size.rows, classes))
        self._room = np.empty(classes), np.empty(classes), np.empty(classes, np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, len(self._room[0]))

    def collect(self, chunk: Chunk, target: np.ndarray, keys: np.ndarray, bias: float, *shares: Any) -> None:
        """Take the rows of `chunk` with the smallest `keys` (n), with the shares that `remember` finds in `shares`."""
        csr, u, first_row = (chunk.indptr, chunk.indices, chunk.data), chunk.weight, chunk.first_row
        room = self._indptr, self._indices, self._data, self._number, self._key, self._weight, self._square, self._goal

        def offered(first: int, limit: float, n: int, *_: Any) -> tuple[int, int]:
            stop, count = cached_rows.offer(first, *csr, target, u, keys, bias, first_row, limit, n, *room)
            self._remember(slice(n, count), self._number[n:count] - first_row, *shares)
            return stop, count

        self.fill(offered, chunk.n_rows)

    def _remember(self, part: slice, rows: np.ndarray, *shares: Any) -> None:
        """The shares of `part` of the cache are those of `rows` of the block."""
        taken = rows, *shares, self._share[part]
        multiclass_cache.remember(*taken)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), self._goal

    def _climb(self, C: float, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        n, (new, room, moved) = self.n, self._room
        return multiclass_cache.sweep(
            self._order, self._indptr, self._indices, self._data, self._weight[:n], self._square[:n], self._share[:n],
            self._goal[:n], C, bias, self._slack, w.reshape(-1, len(new)), new, room, moved,
        )  # fmt: skip

    def _settle(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        before, after, moved = self._room
        rows = self._number[part] - first_row
        past = np.empty(len(before), np.uint16)
        multiclass_cache.settle(
            self._indptr[part.start :], self._indices, self._data, rows, self._weight[part], self._share[part],
            self._goal[part], slot, bias, grids.vector, grids.weight, codes, cuts, sums.reshape(-1), past, before, after, moved,
        )  # fmt: skip
