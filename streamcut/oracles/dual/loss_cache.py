"""The row cache of a lane for losses of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled import dual, interior
from streamcut.compiled.records import CachedRows, CentralPath
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
        self._places: np.ndarray | None = None  # of the rows, in the order of their numbers
        self._path: CentralPath | None = None  # while an interior point method runs; it takes less than sorting rows by key does

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

    def begin(self, last_limit: float) -> None:
        super().begin(last_limit)
        self._places = None

    def _among(self, first_row: int, count: int) -> np.ndarray:  # type: ignore[override]
        if self._places is None:  # rows may come from several places of the lane
            self._places = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + count), sorter=self._places)
        return self._places[first:last]

    def _write_rows_back(self, part: Any, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        dual.write_back(self._loss, self._rows(), part, *slot, bias, grids, codes, cuts, sums)

    # -- the steps of streamcut.oracles.dual.interior ----------------------------------------------------------------------------

    def begin_path(self, C: float, bias: float, w: np.ndarray, mu: float, rest: np.ndarray, moved: np.ndarray) -> float:
        """Dual variables near those of the margins of w, which can be taken back; see streamcut.compiled.interior.begin."""
        self._before[: self.n], self.near = self._share[: self.n], 1.0  # few sweeps follow
        self._path = CentralPath(*(np.empty(self.n) for _ in range(4)))
        return interior.begin(self._all(), C, bias, w, mu, self._path, rest, moved)

    def assemble(self, C: float, bias: float, part: float, mu: float, matrix: np.ndarray, vector: np.ndarray) -> None:
        interior.assemble(self._all(), C, bias, part, mu, self._path, matrix, vector)

    def predict(self, C: float, bias: float, delta: np.ndarray, sums: np.ndarray, vectors: np.ndarray) -> float:
        return interior.predict(self._all(), C, bias, delta, self._path, sums, vectors)

    def reach(self, C: float, bias: float, delta: np.ndarray, mu: float, sums: np.ndarray) -> float:
        return interior.reach(self._all(), C, bias, delta, mu, self._path, sums)

    def leave_path(self, C: float, bias: float, part: float, mu: float, delta: np.ndarray) -> float:
        """The last step; adds to `delta` what w has moved by since `begin_path`, and returns C Σ u Δf."""
        gain = interior.finish(self._all(), C, bias, part, mu, self._path, self._before, delta)
        self._path = None
        return gain

    def _all(self) -> CachedRows:
        return self._rows().part(slice(0, self.n))
