"""What a pass is: a class with a few declared properties and steps; it overrides those that it needs.

A runner (streamcut.execution.runner, streamcut.execution.cluster) takes the rows lane by lane: `begin` makes a zero partial
sum, `visit_chunk` or `visit_rows` adds blocks of consecutive rows, `finish` ends the lane, and
`merge` adds up the partial sums in lane order.

Lanes are fixed ranges of rows. They depend on the data and the options alone, never on workers or memory, so the same store gives
the same bits on any set of workers. Another sharding may not: a block of rows lies in one shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, cast

import numpy as np

from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.io.manifest import Statistics
from streamcut.protocols import Sums

if TYPE_CHECKING:
    from streamcut.execution.feed import Streams

_MAX_LANES = 16
_MIN_NNZ = 1 << 19  # below it, threads cost more than they gain
_MIN_NNZ_PER_FEATURE = 4  # a lane owns a dense sum of d numbers: it should read more entries than that


@dataclass(frozen=True, slots=True)
class Lanes:
    """`bounds[l]:bounds[l + 1]` are the rows of lane l."""

    bounds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def rows(self, lane: int) -> tuple[int, int]:
        return self.bounds[lane], self.bounds[lane + 1]


def plan_lanes(statistics: Statistics, lanes: int | None = None) -> Lanes:
    """`lanes` of them (never more than rows), or the largest power of two, at most 16, that pays for its dense sums."""
    n = statistics.n_rows
    if lanes is None:
        enough = max(_MIN_NNZ, _MIN_NNZ_PER_FEATURE * statistics.n_features)
        useful = min(_MAX_LANES, statistics.nnz // enough)
        lanes = 1 << (max(useful, 1).bit_length() - 1)
    lanes = min(lanes, n)
    return Lanes(tuple(n * lane // lanes for lane in range(lanes + 1)))


class Blocks(NamedTuple):
    """The blocks in which rows come.

    groups    whole groups of equal qid: all that begin in the lane. Without data, the row state `begins` marks the first row of
              each by 1
    together  rows of one block, counted from where the lane or a shard begins (streamcut.execution.feed.Feed.blocks)
    streams   rows from several streams of the lane (their `pieces`), not in row order; None: consecutive rows
    """

    groups: bool = False
    together: int = 1
    streams: Streams | None = None


class Scoring(Protocol):
    """Work on blocks of a pass that needs no earlier block: done ahead, in another thread or on a worker.

    reads  the row-state arrays that it needs, fills those that it writes
    """

    reads: ClassVar[tuple[str, ...]]
    fills: ClassVar[tuple[str, ...]]

    def score(self, rows: Rows, chunk: Chunk) -> np.ndarray:
        """Fill the row state of a block. Returns (n, bool): the rows whose entries the rest of the pass reads."""


class Pass(Generic[Sums]):
    """Base of everything that visits all rows once and adds up `Sums`.

    needs_data     blocks come with their entries (`visit_chunk`); otherwise with the row state alone, no data is read
                   (`visit_rows`)
    interruptible  an abandoned pass leaves nothing behind that affects its repetition
    blocks         the blocks in which rows come
    row_arrays     the row-state arrays that it uses; None: possibly any; empty, and no data: no blocks come
    pure           it changes nothing but its partial sum and the row state, so a lane may run elsewhere, and again
    """

    __slots__ = ()
    needs_data: ClassVar[bool] = True
    interruptible: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...] | None] = None

    @property
    def pure(self) -> bool:
        return True

    @property
    def blocks(self) -> Blocks:
        return Blocks()

    def begin(self, first_row: int) -> Sums:
        """A zero partial sum for the lane that begins at row `first_row`; None: nothing is summed."""
        return cast("Sums", None)  # as all others that do not override it

    def visit_chunk(self, partial: Sums, rows: Rows, chunk: Chunk) -> None:
        """Add a block of rows with their entries; `rows` are writable row-state arrays for exactly these rows."""
        raise NotImplementedError(f"{type(self).__name__} reads data and has no visit_chunk")

    def visit_rows(self, partial: Sums, rows: Rows) -> None:
        """Add a block of consecutive rows, given by their row state alone."""
        raise NotImplementedError(f"{type(self).__name__} reads no data and has no visit_rows")

    def divided(self) -> tuple[Scoring, Pass[Sums]] | None:
        """(the work on blocks that needs no earlier one, this pass on blocks where that is done); None: one visit is enough."""
        return None

    def finish(self, partial: Sums, rows: Rows, first_row: int) -> None:
        """A lane has seen all its rows; `rows` are views of the row state for the whole lane, which begins at `first_row`."""

    def merge(self, total: Sums, part: Sums) -> Sums:
        """The sum of both; may reuse `total`."""
        if total is not None or part is not None:
            raise NotImplementedError(f"{type(self).__name__} has partial sums and no merge")
        return total
