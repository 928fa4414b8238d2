"""The row cache of a lane: copies of the rows that dual ascent may still move most, collected during a pass.

A pass with `caches`, by the first row of their lane, finds in them what the last such pass left. One that needs data refills
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.compiled import cached_rows
from streamcut.compiled.splitmix import shuffle
from streamcut.io.dataset import entry_bytes, entry_dtypes
from streamcut.io.manifest import Manifest

_KEPT = 0.8  # of the rows, when the cache is full: those with the smallest keys
_FULL = 0.9  # of the entries: the most that remain then
_GROUP_NNZ = 1 << 18  # entries of neighbouring rows that a sweep visits in random order before it moves on
_GROUPS = 8  # with fewer groups all rows are shuffled: they fit in the processor's cache anyway
ROW_BYTES = 96  # per cached row, without its entries, with the memory to sort rows by key


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Capacity of one lane: rows, entries, and the dtypes of feature numbers and values (None: every value is 1)."""

    rows: int
    entries: int
    index: str
    value: str | None

    @staticmethod
    def bytes_of_all(manifest: Manifest, row_bytes: int = ROW_BYTES) -> int:
        """Bytes of a cache that holds every row; each takes `row_bytes` in addition to its entries."""
        return row_bytes * manifest.statistics.n_rows + entry_bytes(manifest) * manifest.statistics.nnz

    @classmethod
    def planned(cls, manifest: Manifest, budget: int, lanes: int, row_bytes: int = ROW_BYTES) -> CacheSize | None:
        """The size per lane for `budget` bytes, at most all rows; None when nothing fits."""
        statistics = manifest.statistics
        share = min(1.0, budget / cls.bytes_of_all(manifest, row_bytes))
        rows = int(share * statistics.n_rows / lanes)
        entries = int(share * statistics.nnz / lanes)
        if rows == 0 or entries < statistics.max_row_nnz:
            return None
        return cls(rows + 1, entries, *entry_dtypes(manifest))


class RowCache:
    """Rows of one lane. `limit` is the key below which rows are taken: it falls as the cache fills up."""

    def __init__(self, size: CacheSize) -> None:
        self.size = size
        self.n, self.limit = 0, np.inf
        self._indptr = np.zeros(size.rows + 1, np.int64)
        self._indices = np.empty(size.entries, size.index)
        self._data = None if size.value is None else np.empty(size.entries, size.value)
        self._number = np.empty(size.rows, np.int64)
        self._order = np.arange(0)  # rows that sweeps still visit
        self._key, self._weight, self._square = (np.empty(size.rows) for _ in range(3))

    @property
    def numbers(self) -> np.ndarray:
        """The rows in the cache, in the order in which they came."""
        return self._number[: self.n]

    def begin(self) -> None:
        """Forget all rows."""
        self.n, self.limit = 0, np.inf
        self._order = self._order[:0].copy()  # frees memory in which rows are sorted

    def fill(self, offered: Callable[..., tuple[int, int]], rows: int) -> None:
        """Take what `offered(first, limit, n)` copies; it returns the row at which the cache was full."""
        first = 0
        while first < rows:
            first, self.n = offered(first, self.limit, self.n)
            if first < rows:
                self._shrink()

    def _shrink(self) -> None:
        keys, ends, count, entries = self._key[: self.n], self._indptr[: self.n + 1], self.n, np.inf
        kept = np.ones(count, np.bool_)
        while count > 0 and entries > _FULL * len(self._indices):
            count = min(int(_KEPT * count), count - 1)
            (in_order := keys.copy()).partition(count)
            self.limit = float(in_order[count])
            del in_order  # a number for each row at a time, beside which rows are marked
            np.less(keys, self.limit, out=kept)
            equal = np.flatnonzero(keys == self.limit)
            kept[equal[: count - np.count_nonzero(kept)]] = True
            entries = np.diff(ends).sum(where=kept)
        self._keep(np.flatnonzero(kept))
        self.n = count

    def _shuffle(self, seed: int) -> None:
        """A random order of the rows that sweeps still visit."""
        order, entries, size = self._order, int(self._indptr[self.n]), self.n + 1
        if entries >= _GROUPS * _GROUP_NNZ:
            order.sort()
            size = max(1, _GROUP_NNZ * self.n // entries)
        shuffle(order, size, seed)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return self._number, self._key, self._weight, self._square

    def _keep(self, kept: np.ndarray) -> None:
        cached_rows.keep(kept, self._indptr, self._indices, self._data)
        for array in self._by_row():
            cached_rows.move_up(kept, array.reshape(len(array), -1))


def joined_seed(*numbers: int) -> int:
    """One number below 2⁶³ from several: a seed for each combination."""
    seed = 0
    for number in numbers:
        seed = ((seed ^ number) * 0x9E3779B97F4A7C15 + 1) & (1 << 63) - 1
        seed ^= seed >> 29
    return seed
