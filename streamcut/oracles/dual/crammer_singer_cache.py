"""The row cache of a lane for K classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.compiled import cached_rows, multiclass_cache
from streamcut.compiled.records import CachedRows, ClassBuffers, CutSums, Rows
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache, SweptCache
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids


def row_bytes(classes: int) -> int:
    """Of a cached row beside its entries: its class, and its shares before and after a sweep."""
    return ROW_BYTES + 8 + 16 * classes


def class_buffers(classes: int) -> ClassBuffers:
    """Room for kernels to work in."""
    return ClassBuffers(np.empty(classes), np.empty(classes), np.empty(classes), np.empty(classes, np.int64))


class ClassesCache(SweptCache):
    """Rows with a share for each of `classes`; w is (D, K) flat, what they add to is (2, D, K)."""

    def __init__(self, size: CacheSize, classes: int) -> None:
        super().__init__(size)
        self._classes = classes
        self._goal = np.empty(size.rows, np.int64)
        self._share, self._before = np.empty((size.rows, classes)), np.empty((size.rows, classes))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self._classes)

    def fits(self, other: RowCache) -> bool:
        return super().fits(other) and isinstance(other, ClassesCache) and self._classes == other._classes

    def hold(self, rows: Chunk, weight: np.ndarray, square: np.ndarray, target: np.ndarray) -> None:
        super().hold(rows, weight, square, target)
        self._goal[: self.n] = target
        self._share[np.arange(self.n), target] = 1.0  # its own class has all of it: no part in the dual

    def collect(self, chunk: Chunk, target: np.ndarray, keys: np.ndarray, bias: float, *shares: Any) -> None:
        """Take the rows of `chunk` with the smallest `keys` (n), with the shares that `remember` finds in `shares`."""
        rows = Rows(chunk.indptr, chunk.indices, chunk.data, target, chunk.weight)

        def offered(first: int, limit: float, n: int) -> tuple[int, int]:
            stop, count = cached_rows.offer(first, rows, keys, bias, chunk.first_row, limit, n, self._rows())
            self._remember(slice(n, count), self._number[n:count] - chunk.first_row, *shares)
            return stop, count

        self.fill(offered, chunk.n_rows)

    def _rows(self) -> CachedRows:
        csr = self._indptr, self._indices, self._data
        return CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._goal)

    def _remember(self, part: slice, rows: np.ndarray, *shares: Any) -> None:
        """The shares of `part` of the cache are those of `rows` of the block."""
        taken = rows, *shares, self._share[part]
        multiclass_cache.remember(*taken)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), self._goal

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        K = self._classes
        return multiclass_cache.sweep(self._order, self._rows(), C, bias, l1, self._slack, w.reshape(-1, K), class_buffers(K))

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        changed, past = CutSums(cuts, sums.reshape(-1)), np.empty(self._classes, np.uint16)
        buffers = class_buffers(self._classes)
        multiclass_cache.write_back(self._rows().part(part), first_row, slot, bias, grids, codes, changed, past, buffers)
