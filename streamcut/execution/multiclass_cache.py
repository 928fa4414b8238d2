"""The row cache of a lane for K classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache
from streamcut.passes import multiclass_cache


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

    def _arrays(self) -> tuple[np.ndarray | None, ...]:
        return *super()._arrays(), self._goal

    def _keep(self, kept: np.ndarray) -> None:
        multiclass_cache.keep(kept, *self._arrays())

    def _climb(self, C: float, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        n, (new, room, moved) = self.n, self._room
        return multiclass_cache.sweep(
            self._order, self._indptr, self._indices, self._data, self._weight[:n], self._square[:n], self._share[:n],
            self._goal[:n], C, bias, self._slack, w.reshape(-1, len(new)), new, room, moved,
        )  # fmt: skip

    def _settle(self, part: slice, rows: np.ndarray, slot: int, *where) -> None:
        before, after, moved = self._room
        bias, vector, scalar, codes, cuts, sums = where
        past = np.empty(len(before), np.uint16)
        multiclass_cache.settle(
            self._indptr[part.start :], self._indices, self._data, rows, self._weight[part], self._share[part],
            self._goal[part], slot, bias, vector, scalar, codes, cuts, sums, past, before, after, moved,
        )  # fmt: skip
