"""What is kept of rows between passes: the row state, named arrays with an entry per row, in memory or, when it does not fit, in
memory-mapped scratch files; and the sizes of row caches.

Pages of a mapped file count as resident while mapped, so callers release rows after visiting them. The kernel keeps or
writes back the pages as it likes; the contents do not change. Scratch files have no name, so nothing remains of them however the
process ends.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from streamcut.errors import NotFoundError
from streamcut.foundation.files import disk_full
from streamcut.foundation.systems import release, reserve
from streamcut.io.dataset import entry_bytes, entry_dtypes
from streamcut.io.manifest import Manifest


def scratch_map(folder: Path, size: int) -> mmap.mmap:
    """A file of `size` bytes of zeros. Raises DiskFullError at once when the disk is full, not when a page is written."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="streamcut-") as file:
            with disk_full(folder, size):
                reserve(file.fileno(), size)
            return mmap.mmap(file.fileno(), size)
    except FileNotFoundError:
        raise NotFoundError(f"--scratch: {folder} is not a folder; create it first") from None
    except PermissionError:
        raise NotFoundError(f"--scratch: {folder} cannot be written to; choose another folder") from None


Rows = dict[str, np.ndarray]
_WINDOW = 2 << 20  # a page fault maps up to this many bytes around it: the largest folio of the page cache
SPILLED_BYTES = 2 * _WINDOW  # the most that one array in a scratch file takes per worker, without its block


class RowState:
    """`arrays` are named, one entry for each of `n_rows` rows. `scratch`: the folder of their files; None keeps them in memory.

    Scratch files have no name, so nothing remains of them however the process ends. Raises DiskFullError at once when the
    disk is full, not when a page is written.
    """

    def __init__(self, n_rows: int, scratch: Path | None = None) -> None:
        self.n_rows = n_rows
        self.arrays: Rows = {}
        self._scratch = scratch
        self._maps: dict[str, mmap.mmap] = {}

    def add(self, name: str, dtype: DTypeLike = np.float64, shape: tuple[int, ...] = ()) -> None:
        """A new array of zeros, `shape` of `dtype` for each row; replaces any of that name."""
        dtype, whole = np.dtype(dtype), (self.n_rows, *shape)
        if self._scratch is None:
            self.arrays[name] = np.zeros(whole, dtype)
        else:
            self.arrays[name] = self._mapped(name, dtype, math.prod(whole), self._scratch).reshape(whole)

    def clear(self) -> None:
        """Forget all arrays: another method begins."""
        self.arrays.clear()
        self._maps.clear()

    def release(self, start: int, stop: int) -> None:
        """Unmap the pages of rows start:stop; they are mapped again when they are used."""
        for name, mapped in self._maps.items():
            row = self.arrays[name].strides[0]
            first = row * start // _WINDOW * _WINDOW
            length = min(-(-row * stop // _WINDOW) * _WINDOW, len(mapped)) - first
            if length > 0:
                release(mapped, first, length)

    def _mapped(self, name: str, dtype: np.dtype, count: int, folder: Path) -> np.ndarray:
        self._maps[name] = scratch_map(folder, dtype.itemsize * count)
        return np.frombuffer(self._maps[name], dtype)


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
