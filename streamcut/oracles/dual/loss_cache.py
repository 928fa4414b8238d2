"""The row cache of a lane for losses of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.compiled import dual
from streamcut.compiled.records import CachedRows
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, SweptCache
from streamcut.foundation.rounding import Grids
from streamcut.losses.loss import Loss


def row_bytes(loss: Loss) -> int:
    """Bytes of a cached row in addition to its entries, including a numeric target."""
    return ROW_BYTES + 8 * (loss.targets == "numbers")


class LossCache(SweptCache):
    """Rows with a share of the dual of `loss`."""

    def __init__(self, size: CacheSize, loss: Loss) -> None:
        super().__init__(size)
        self.loss = loss
        self._target = np.empty(size.rows) if loss.targets == "numbers" else None
        self._places: np.ndarray | None = None  # places of the rows, by ascending row number
        csr = self._indptr, self._indices, self._data
        self._rows = CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._target)

    def _arrays(self) -> tuple[Any, ...]:
        return (self._rows,)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), *(() if self._target is None else (self._target,))

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[Any, int, Any]:
        return dual.sweep(self.loss, self._order, self._rows, C, bias, l1, self._slack, w)

    def begin(self) -> None:
        super().begin()
        self._places = None

    def _among(self, first_row: int, count: int) -> np.ndarray:  # type: ignore[override]
        if self._places is None:  # rows may come from several places of the lane
            self._places = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + count), sorter=self._places)
        return self._places[first:last]

    def _write_rows_back(self, part: Any, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        dual.write_back(self.loss, self._rows, part, first_row, slot, bias, grids, codes, cuts, sums)

    def gathered(self) -> CachedRows:
        """The cached rows."""
        rows, last = self._rows.part(slice(0, self.n)), self._indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def move_to(self, share: np.ndarray) -> None:
        """Set the shares (n) of cached rows; the next `step_back` takes part of that back. Few sweeps are to follow."""
        self._before[: self.n], self._share[: self.n], self.near = self._share[: self.n], share, 1.0
