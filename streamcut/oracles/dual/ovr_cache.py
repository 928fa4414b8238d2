"""The row cache of a lane for one class against the rest, several classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled import ovr_cache
from streamcut.compiled.records import CutSums, PairBuffers, Pairs
from streamcut.execution.row_cache import ROW_BYTES, CacheSize
from streamcut.losses.classes import OneVsRest
from streamcut.oracles.dual.crammer_singer_cache import ClassesCache
from streamcut.rounding import Grids


def row_bytes(classes: int) -> int:
    """Of a cached row beside its entries: its class, its shares before and after a sweep, and which of them may still move."""
    return ROW_BYTES + 8 + 17 * classes


def pair_buffers(problems: int) -> PairBuffers:
    """Room for kernels to work in."""
    changes = np.empty(2 * problems, np.int64), np.empty(2 * problems), np.empty(2 * problems)
    return PairBuffers(np.empty(problems), *changes)


class OvrCache(ClassesCache):
    """Rows with a share for each of the A classes `active`, at most `classes`; w is (D, A), what they add to (D, 2 A).

    `at_work` are the columns that are swept. What a RowCache takes and gives for one problem is here an array, one for each.
    """

    def __init__(self, size: CacheSize, risk: OneVsRest) -> None:
        classes = risk.classes
        super().__init__(size, classes)
        self._risk = risk
        self._most = np.empty((2, size.rows * classes)), np.empty(size.rows * classes, np.bool_)
        self.serve(np.arange(classes))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self._risk)

    def content(self) -> dict[str, Any]:
        return {name: value for name, value in super().content().items() if name != "_most"}  # of which the others are parts

    def serve(self, active: np.ndarray) -> None:
        """From now on the classes are `active`; the cache must be empty."""
        self.active, self.at_work = active, np.arange(len(active))
        rows, (shares, busy) = len(self._number), self._most
        used = rows * len(active)
        self._share, self._before = shares[:, :used].reshape(2, rows, -1)
        self._busy = busy[:used].reshape(rows, -1)

    def hold(self, rows: Chunk, weight: np.ndarray, square: np.ndarray, target: np.ndarray) -> None:
        super().hold(rows, weight, square, target)
        self._share[: self.n] = 0.0
        self.visit_movable()

    def visit_movable(self) -> None:
        super().visit_movable()
        self._busy[: self.n] = True

    def step_back(self, theta: Any) -> None:
        """Of the last sweep's steps only the parts `theta` (A)."""
        share, before = self._share[: self.n], self._before[: self.n]
        for a in np.flatnonzero(theta < 1.0):
            share[:, a] = before[:, a] + theta[a] * (share[:, a] - before[:, a])

    def _remember(self, part: slice, rows: np.ndarray, *shares: Any) -> None:
        taken = rows, *shares, self._share[part], self._busy[part]
        ovr_cache.remember(self._risk.loss, *taken)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), self._busy

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[Any, int, Any]:
        A = len(self.active)
        gain, largest, slack = np.zeros(A), np.zeros(A), np.full(A, self._slack)
        pairs = Pairs(self.active, self.at_work, slack)
        left = ovr_cache.sweep(
            self._risk.loss, self._order, self._rows(), self._busy, pairs, C, bias, l1, w, gain, largest, pair_buffers(A)
        )
        return gain, left, largest

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        rows, changed = self._rows().part(part), CutSums(cuts, sums)
        buffers = pair_buffers(len(self.active))
        ovr_cache.write_back(self._risk.loss, rows, first_row, self.active, slot, bias, grids, codes, changed, buffers)
