"""What a pass is: a class with a few declared facts and five steps, of which it writes those that it needs.

A runner (streamcut.execution.runner, streamcut.execution.dask.runner) takes the rows lane by lane: `begin` makes a zero partial
sum, `enter` says which lane comes, `visit_chunk` or `visit_rows` adds blocks of consecutive rows, `finish` ends the lane, and
`merge` adds the partial sums up, in the order of the lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.compiled import vectors
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk

if TYPE_CHECKING:
    from streamcut.execution.feed import Streams


class Pass:
    """Base of everything that is done once with all rows.

    needs_data     blocks come with their entries (`visit_chunk`); otherwise with the row state alone, and nothing is read
                   (`visit_rows`)
    interruptible  a pass that is given up halfway leaves nothing behind that its repetition would see
    whole_groups   blocks hold whole groups of equal qid: all those that begin in the lane; with an `alignment` whole batches of
                   them (streamcut.execution.feed.batch_numbers). Without data they are found by the row state `begins`, 1
                   in the first row of each
    row_arrays     the arrays of the row state that it asks for; None: it may ask for any; none, and no data: no blocks come
    summed         attributes of its partial sums that are float64 arrays (or None) and merge feature by feature, as `add_range`
                   does; `merge` takes empty ones, too (see `arrays`)
    pure           it changes nothing but its partial sum and the row state, so a lane may be done again, elsewhere
    """

    __slots__ = ()
    needs_data: ClassVar[bool] = True
    interruptible: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...] | None] = None
    summed: ClassVar[tuple[str, ...]] = ()
    pure: ClassVar[bool] = True

    @property
    def whole_groups(self) -> bool:
        return False

    @property
    def alignment(self) -> int:
        """Blocks begin and end only at rows that are multiples of it, or where the lane does."""
        return 1

    @property
    def streams(self) -> Streams | None:
        """Blocks hold rows from several places of the lane (their `pieces`), in an order of its own; None: consecutive ones."""
        return None

    def begin(self) -> Any:
        """A zero partial sum for a lane; None: nothing is summed."""
        return None

    def enter(self, partial: Any, first_row: int) -> None:
        """A lane begins, at row `first_row`."""

    def visit_chunk(self, partial: Any, rows: Rows, chunk: Chunk) -> None:
        """Add a block of rows with their entries; `rows` are the row state's arrays for just these rows, to be written to."""
        raise NotImplementedError(f"{type(self).__name__} reads data and has no visit_chunk")

    def prepare(self, partial: Any, rows: Rows, chunk: Chunk) -> Any:
        """Of a block from several places, what needs no block before it: a thread of its own may do that ahead of them."""
        return None

    def visit_prepared(self, partial: Any, rows: Rows, chunk: Chunk, prepared: Any) -> None:
        """The rest of visit_chunk; `prepared` is what `prepare` made of the block."""
        self.visit_chunk(partial, rows, chunk)

    def visit_rows(self, partial: Any, rows: Rows) -> None:
        """Add a block of consecutive rows, of which there is the row state alone."""
        raise NotImplementedError(f"{type(self).__name__} reads no data and has no visit_rows")

    def finish(self, partial: Any, rows: Rows, first_row: int) -> None:
        """A lane has seen all its rows; `rows` are views of the row state for the whole lane, which begins at `first_row`."""

    def merge(self, total: Any, part: Any) -> Any:
        """The sum of both; may reuse `total`."""
        if total is not None or part is not None:
            raise NotImplementedError(f"{type(self).__name__} has partial sums and no merge")

    def arrays(self, partial: Any) -> dict[str, np.ndarray]:
        """What a partial sum has of `summed`, by name. Lanes may have different names; those of one name add up."""
        return {name: array for name in self.summed if (array := getattr(partial, name)) is not None}

    def put(self, partial: Any, name: str, array: np.ndarray) -> None:
        """Give a partial sum an array of `arrays`, in place of the one it has."""
        setattr(partial, name, array)

    def add_range(self, name: str, total: np.ndarray, part: np.ndarray, start: int) -> None:
        """Add the numbers of array `name` of `arrays` from `start` on (flat) of a lane to those of the lanes before it."""
        vectors.add(total, part)


class CachingPass(Pass):
    """Base of passes that find row caches in `caches`, by the first row of their lane (streamcut.execution.cache_passes)."""

    __slots__ = ()
    caches: Mapping[int, Any]


def row_caches(work: Pass) -> Mapping[int, Any]:
    """The row caches of a pass; none unless it is a CachingPass."""
    return work.caches if isinstance(work, CachingPass) else {}
