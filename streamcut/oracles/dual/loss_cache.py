"""The row cache of a lane for losses of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled import dual
from streamcut.compiled.records import CachedRows
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache
from streamcut.losses.loss import Loss
from streamcut.rounding import Grids


def row_bytes(loss: Loss) -> int:
    """Of a cached row beside its entries: its target, too, where that is a number."""
    return ROW_BYTES + 8 * (loss.targets == "numbers")


class LossCache(RowCache):
    """Rows with a share of the dual of `loss`."""

    def __init__(self, size: CacheSize, loss: Loss) -> None:
        super().__init__(size)
        self._loss = loss
        self._target = np.empty(size.rows) if loss.targets == "numbers" else None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self._loss)

    def hold(self, rows: Chunk, weight: np.ndarray, square: np.ndarray, target: np.ndarray) -> None:
        super().hold(rows, weight, square, target)
        if self._target is not None:
            self._target[: self.n] = target

    def _arrays(self) -> tuple[Any, ...]:
        return (self._rows(),)

    def _rows(self) -> CachedRows:
        csr = self._indptr, self._indices, self._data
        return CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._target)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), *(() if self._target is None else (self._target,))

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[Any, int, Any]:
        return dual.sweep(self._loss, self._order, self._rows(), C, bias, l1, self._slack, w)

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        blocks, slots = slot
        dual.write_back(self._loss, self._rows().part(part), blocks, slots, bias, grids, codes, cuts, sums)
