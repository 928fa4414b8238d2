"""The sizes of row caches."""

from __future__ import annotations

from dataclasses import dataclass

from streamcut.io.dataset import entry_bytes, entry_dtypes
from streamcut.io.manifest import Manifest

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
