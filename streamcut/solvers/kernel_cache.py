"""A cache of kernel columns in float32, over the rows that SMO still moves."""

from __future__ import annotations

import numpy as np


class KernelCache:
    """Columns of the kernel over the active rows, float32; the least recently used one is evicted.

    Memory is taken column by column, `used` so far: if all columns fit, only requested columns take memory.
    """

    def __init__(self, n_rows: int, size: int) -> None:
        self.slot_of = np.full(n_rows, -1, np.int32)
        self.stamps = np.zeros(n_rows, np.int64)
        self._size = max(size // 4, 2 * n_rows)
        self.numbers = np.empty(min(self._size, n_rows * n_rows), np.float32)
        self._owner = np.full(n_rows, -1, np.int64)
        self.used = 0
        self.resize(n_rows)

    def resize(self, width: int) -> None:
        """Set the column length to `width`; cached columns stay only if they have it."""
        self.width = width
        self._slots = min(len(self.numbers) // max(width, 1), len(self._owner))

    def clear(self, width: int) -> None:
        """Drop all columns."""
        self.slot_of[:], self.stamps[:], self._owner[:], self.used = -1, 0, -1, 0
        self.resize(width)

    def put(self, row: int, column: np.ndarray, now: int) -> None:
        """Keep the column of `row`."""
        if self.used < self._slots:
            slot, self.used = self.used, self.used + 1
        else:
            slot = int(np.argmin(self.stamps[: self._slots]))
        if self._owner[slot] >= 0:
            self.slot_of[self._owner[slot]] = -1
        self._owner[slot], self.slot_of[row], self.stamps[slot] = row, slot, now
        self.numbers[slot * self.width : (slot + 1) * self.width] = column

    def narrow(self, kept: np.ndarray) -> None:
        """Keep only the positions `kept` of all columns."""
        for slot in range(self.used):  # unwritten columns have no memory yet
            column = self.numbers[slot * self.width : (slot + 1) * self.width][kept]
            self.numbers[slot * len(kept) : (slot + 1) * len(kept)] = column
        self.resize(len(kept))
