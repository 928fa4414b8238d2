"""Blocks of rows: each has a mixture of its own in the bundle (streamcut.bundle.blocks), and leaves cuts of its own.

A lane has several blocks, to which its rows are dealt in pieces, or, where there are more lanes than blocks, lanes next to each
other share one. To which block a row belongs depends on its number, the lanes and how many blocks there are, on nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from streamcut.compiled import records
from streamcut.execution.lanes import Lanes

PIECE = 32  # rows


@dataclass(frozen=True, slots=True)
class Blocks:
    """`count` blocks of the rows of lanes that begin at `starts` (L) and end at `stop`; each lane has `each` of them."""

    starts: tuple[int, ...]
    stop: int
    count: int
    each: int

    @classmethod
    def of(cls, lanes: Lanes, wanted: int) -> Blocks:
        """As many as are wanted; where lanes have several, all have equally many."""
        each = max(1, wanted // len(lanes))
        return cls(lanes.bounds[:-1], lanes.bounds[-1], each * len(lanes) if wanted >= len(lanes) else wanted, each)

    def first_of(self, row: int) -> int:
        """The first block of the lane that this row belongs to."""
        return (bisect_right(self.starts, row) - 1) * self.count // len(self.starts)

    def of_rows(self, numbers: np.ndarray) -> np.ndarray:
        """int64 (n): the blocks of these rows of one lane, 0 … each − 1."""
        return numbers // PIECE % self.each

    def rows(self, first_row: int) -> records.Blocks:
        """The same for kernels, of rows from `first_row` on."""
        return records.Blocks(first_row, PIECE, self.each)

    @property
    def most_rows(self) -> int:
        """No block has more rows."""
        lengths = [after - start for start, after in zip(self.starts, (*self.starts[1:], self.stop), strict=True)]
        if self.each > 1:
            return max(min(length, (length // (PIECE * self.each) + 2) * PIECE) for length in lengths)
        sums = [0] * self.count
        for start, length in zip(self.starts, lengths, strict=True):
            sums[self.first_of(start)] += length
        return max(sums)
