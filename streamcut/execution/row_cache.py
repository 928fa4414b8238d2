"""The sizes of row caches, and the random order in which sweeps visit their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.compiled.splitmix import shuffle
from streamcut.io.dataset import entry_bytes, entry_dtypes
from streamcut.io.manifest import Manifest

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


def shuffle_rows(order: np.ndarray, entries: int, rows: int, seed: int) -> None:
    """Put `order`, numbers of some of `rows` cached rows with so many entries, in random order, in place: from one group of
    neighbouring rows to the next, if a cache of the processor does not hold all."""
    size = rows + 1
    if entries >= _GROUPS * _GROUP_NNZ:
        order.sort()
        size = max(1, _GROUP_NNZ * rows // entries)
    shuffle(order, size, seed)


def joined_seed(*numbers: int) -> int:
    """One number below 2⁶³ from several: a seed for each combination."""
    seed = 0
    for number in numbers:
        seed = ((seed ^ number) * 0x9E3779B97F4A7C15 + 1) & (1 << 63) - 1
        seed ^= seed >> 29
    return seed
