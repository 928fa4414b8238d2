"""The base of `bundle-dca` passes over the data: scores, a predicted cut, steps of dual ascent, and rows for the cache.

A family of losses adds what its first pass does, and its kernel.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import vectors
from streamcut.compiled.records import Visits
from streamcut.errors import CorruptError
from streamcut.execution.cache_passes import FillingPass
from streamcut.execution.feed import Streams
from streamcut.execution.row_cache import RowCache
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.oracles.row_passes import Totals


def require_finite(chunk: Chunk, bad: int) -> None:
    """Raise CorruptError for the row `bad` of a block, if it is not −1."""
    if bad >= 0:
        raise CorruptError(f"row {chunk.numbers[bad] + 1}: its score is not finite; run `streamcut info --check --read-data`")


@dataclass(slots=True)
class DualSums:
    """The sum of a pass. w is flat, or (D, A) for A problems in columns.

    w     the running w′, after the last lane with the steps of all lanes; None once it is no longer needed
    cuts  both cuts, and b their constants, not divided by M: (2, folds, D) and (2, 4) with the sums that bound rounding for
          losses of single rows; (2, D, K) and (2, 1) for K classes; (D, 2 A) and (2 A) for A problems
    """

    w: np.ndarray | None
    cuts: np.ndarray
    b: np.ndarray
    totals: Totals | None = None
    cache: RowCache | None = None


@dataclass(frozen=True, slots=True)
class DualPass(FillingPass):
    """Base: scores, predicted cut and a visit of dual ascent; rows are offered to the lane's cache. `first` sums the totals.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from the first row of the block. With `streams` each block is a group.
    """

    risk: Any
    grids: Grids
    C: float
    bias: float
    ascent: Any
    order: np.ndarray
    places: np.ndarray
    caches: Mapping[int, Any]  # by the first row of the lane
    first: bool
    streams: Streams | None = field(default=None, kw_only=True)  # type: ignore[assignment]
    near: int = field(default=0, kw_only=True)  # rows of a group scored and stepped at a time; 0: all
    fetched: np.ndarray | None = field(default=None, kw_only=True)  # the rows of `order`, ascending within each run of `near`
    interruptible: ClassVar[bool] = True

    @property
    def together(self) -> int:
        """Blocks hold whole batches."""
        return len(self.order) * len(self.places)

    @abstractmethod
    def learn(self, totals: Totals, rows: Rows, chunk: Chunk) -> None:
        """Work of the first pass: fill the row state, and add to `totals`."""

    @abstractmethod
    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        """Run the kernel, which fills `keys` (n); returns a row whose score is not finite, or −1."""

    def visits(self, steps: int) -> Visits:
        """The order in which the rows of a block are visited, free ones up to `steps` times."""
        size = len(self.order)
        fetched = np.arange(size) if self.fetched is None else self.fetched
        return Visits(self.order, self.places, steps, fetched, self.near or size)

    def visit_chunk(self, sums: DualSums, rows: Rows, chunk: Chunk) -> None:
        if sums.totals is not None:
            self.learn(sums.totals, rows, chunk)
        keys = np.empty(chunk.n_rows)
        require_finite(chunk, self.ascend(sums, rows, chunk, keys))
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, keys)

    def merge(self, total: DualSums, part: DualSums) -> DualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        if total.w is not None:
            assert part.w is not None
            vectors.add(total.w.reshape(-1), part.w.reshape(-1))
            total.w -= self.ascent.running  # now w′ and the steps of all lanes
        total.b += part.b
        if total.totals is not None:
            assert part.totals is not None
            total.totals.merge(part.totals)
        return total
