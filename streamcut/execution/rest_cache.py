"""The row cache of a lane for one class against the rest, several classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache
from streamcut.passes import rest_dual


def row_bytes(classes: int) -> int:
    """Of a cached row beside its entries: its class, its shares before and after a sweep, and which of them may still move."""
    return ROW_BYTES + 8 + 17 * classes


class RestCache(RowCache):
    """Rows with a share for each of the A classes `active`, at most `classes`; w is (D, A), what they add to (D, 2 A).

    `at_work` are the columns that are swept. What a RowCache takes and gives for one problem is here an array, one for each.
    """

    def __init__(self, size: CacheSize, classes: int) -> None:
        super().__init__(size)
        self._classes = classes
        self._goal = np.empty(size.rows, np.int64)
        self._room = np.empty((2, size.rows * classes)), np.empty(size.rows * classes, np.bool_)
        self.serve(np.arange(classes))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self._classes)

    def serve(self, active: np.ndarray) -> None:
        """From now on the classes are `active`; the cache must be empty."""
        self.active, self.at_work = active, np.arange(len(active))
        rows, (shares, busy) = len(self._number), self._room
        used = rows * len(active)
        self._share, self._before = shares[:, :used].reshape(2, rows, -1)
        self._busy = busy[:used].reshape(rows, -1)

    def step_back(self, theta: Any) -> None:
        """Of the last sweep's steps only the parts `theta` (A)."""
        share, before = self._share[: self.n], self._before[: self.n]
        for a in np.flatnonzero(theta < 1.0):
            share[:, a] = before[:, a] + theta[a] * (share[:, a] - before[:, a])

    def _arrays(self) -> tuple[np.ndarray | None, ...]:
        return *super()._arrays(), self._goal, self._busy

    def _keep(self, kept: np.ndarray) -> None:
        rest_dual.keep(kept, *self._arrays())

    def _climb(self, C: float, bias: float, w: np.ndarray) -> tuple[Any, int, Any]:
        n, A = self.n, len(self.active)
        gain, largest = np.zeros(A), np.zeros(A)
        left = rest_dual.sweep(
            self._order, self._indptr, self._indices, self._data, self._weight[:n], self._square[:n], self._share[:n],
            self._goal[:n], self._busy[:n], self.active, self.at_work, C, bias, np.full(A, self._slack), w, gain, largest,
            np.empty(A), np.empty(A, np.int64), np.empty(A),
        )  # fmt: skip
        return gain, left, largest

    def _settle(self, part: slice, rows: np.ndarray, slot: Any, *where) -> None:
        A = len(self.active)
        bias, vector, scalar, codes, cuts, sums = where
        rest_dual.settle(
            self._indptr[part.start :], self._indices, self._data, rows, self._weight[part], self._share[part],
            self._goal[part], self.active, slot, bias, vector, scalar, codes, cuts, sums,
            np.empty(A, np.int64), np.empty(A), np.empty(A),
        )  # fmt: skip
