"""The row cache of a lane: copies of the rows that dual ascent may still move most, collected as they pass by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.io.manifest import Manifest
from streamcut.passes import dual

_KEPT = 0.8  # of the room, when it is full: the rows with the smallest keys
_LOOSER = 1.5  # a pass begins with the last limit times this: keys change, and room that is left would be wasted
ROW_BYTES = 64  # of a cached row beside its entries


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Room of one lane: rows, entries, and the dtypes of feature numbers and values (None: every value is 1)."""

    rows: int
    entries: int
    index: str
    value: str | None

    @classmethod
    def planned(cls, manifest: Manifest, budget: int, lanes: int) -> CacheSize | None:
        """What `budget` bytes give each of so many lanes, never more than all rows; None when that is nothing."""
        statistics = manifest.statistics
        index = "int32" if statistics.n_features <= 2**31 - 1 else "int64"
        dtypes = {shard.arrays["data"].dtype for shard in manifest.shards if not shard.ones}
        value = np.result_type(*dtypes).name if dtypes else None
        entry = np.dtype(index).itemsize + (np.dtype(value).itemsize if value else 0)
        share = min(1.0, budget / (ROW_BYTES * statistics.n_rows + entry * statistics.nnz))
        rows = int(share * statistics.n_rows / lanes)
        entries = int(share * statistics.nnz / lanes)
        if rows == 0 or entries < statistics.max_row_nnz:
            return None
        return cls(rows + 1, entries, index, value)


class RowCache:
    """Rows of one lane. `limit` is the key below which rows are taken; what a pass begins with decides what it ends with."""

    def __init__(self, size: CacheSize) -> None:
        self.n = 0
        self.limit = np.inf
        self._indptr = np.zeros(size.rows + 1, np.int64)
        self._indices = np.empty(size.entries, size.index)
        self._data = None if size.value is None else np.empty(size.entries, size.value)
        self._number = np.empty(size.rows, np.int64)
        self._key, self._weight, self._square, self._share, self._before = (np.empty(size.rows) for _ in range(5))

    def clear(self) -> None:
        """Forget the rows; the limit loosens."""
        self.n = 0
        self.limit *= _LOOSER

    def fill(self, offered: Callable[..., tuple[int, int]], rows: int) -> None:
        """Take what dual.offer copies: `offered(first, limit, n, *arrays)` tells where it ran out of room."""
        first = 0
        while first < rows:
            first, self.n = offered(first, self.limit, self.n, *self._arrays())
            if first < rows:
                self._shrink()

    def sweep(self, order: np.ndarray, C: float, bias: float, w: np.ndarray) -> float:
        """One sweep in place on w, which can be taken back; returns C Σ u Δf."""
        n = self.n
        self._before[:n] = self._share[:n]
        return dual.sweep(
            order, self._indptr, self._indices, self._data, self._weight[:n], self._square[:n], self._share[:n], C, bias, w
        )

    def step_back(self, theta: float) -> None:
        """Of the last sweep's step only the part `theta`."""
        share, before = self._share[: self.n], self._before[: self.n]
        share -= before
        share *= theta
        share += before

    def settle(self, slot: int, bias: float, vector: float, scalar: float, first_row: int, codes, table, sums) -> None:
        """dual.settle for all rows of the cache."""
        n = self.n
        dual.settle(
            self._indptr, self._indices, self._data, self._number[:n], self._weight[:n], self._share[:n],
            slot, bias, vector, scalar, first_row, codes, table, sums,
        )  # fmt: skip

    def _arrays(self) -> tuple[np.ndarray | None, ...]:
        return self._indptr, self._indices, self._data, self._number, self._key, self._weight, self._square, self._share

    def _shrink(self) -> None:
        order = np.argsort(self._key[: self.n], kind="stable")
        entries = np.cumsum(np.diff(self._indptr[: self.n + 1])[order])
        fits = int(np.searchsorted(entries, _KEPT * len(self._indices), side="right"))
        count = min(fits, int(_KEPT * len(self._number)), self.n - 1)
        self.limit = float(self._key[order[count]])
        dual.keep(np.sort(order[:count]), *self._arrays())
        self.n = count
