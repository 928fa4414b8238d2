"""The row state between two passes, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Interrupted

BLOCK_ROWS = 1 << 17


class RowBlocks:
    """Blocks of all rows, on `workers` threads. Their bounds depend on the data alone, and so do sums over blocks.

    rows     gives the row state as whole arrays
    release  releases rows start:stop
    stop     polled before every block
    """

    def __init__(
        self,
        n_rows: int,
        rows: Callable[[], Rows],
        release: Callable[[int, int], None],
        workers: int = 1,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.n_rows = n_rows
        self.workers = workers
        self._rows = rows
        self._release = release
        self._stop = stop

    def map(
        self, work: Callable[[int, Rows], Any], bounds: Sequence[int] | np.ndarray | None = None, *, to_the_end: bool = False
    ) -> Iterator[Any]:
        """The results of `work`(first row, row state) for each block, in order.

        Block b is bounds[b]:bounds[b + 1], by default BLOCK_ROWS rows. Its pages are released afterwards. Raises Interrupted when
        `stop` returns true, unless `to_the_end`.
        """
        if bounds is None:
            bounds = [*range(0, self.n_rows, BLOCK_ROWS), self.n_rows]
        arrays = self._rows()

        def one(block: tuple[int, int]) -> Any:
            start, stop = block
            if not to_the_end and self._stop():
                raise Interrupted
            try:
                return work(start, {name: array[start:stop] for name, array in arrays.items()})
            finally:
                self._release(start, stop)

        yield from in_threads(one, list(pairwise(map(int, bounds))), self.workers)

    def each(self, work: Callable[[int, Rows], Any]) -> None:
        """As `map`, uninterrupted, for work that returns nothing and must not be left half done."""
        for _ in self.map(work, to_the_end=True):
            pass


def in_threads(work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> Iterator[Any]:
    """work(item) of each item, in order."""
    workers = min(workers, len(items))
    if workers <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers, "rows") as pool:
        yield from pool.map(work, items)
