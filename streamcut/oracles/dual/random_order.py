"""The random order in which dual ascent visits rows: groups that fit a cache level, and batches of groups.

For losses of single rows all rows of a batch come in one random order ("mixed"): neighbours that always come together slow
down convergence (solvers/bundle_dca.md). For the same reason a lane of several batches is read from several places at once,
different in each pass, where memory allows: batches combine pieces of each place.

A mixed batch is larger than a cache level. So the rows of its random order come in runs: as many as a group has are fetched
in memory order, and then take their steps in any order.

Where passes are accelerated, a row cache too small for all free rows takes a random sample of them (`sample_free`). Plain ascent
keeps those nearest to their kink: the others will soon reach a bound and leave. Accelerated ascent converges to a mean of its
steps, so sweeps should move that mean as steps over all rows would, and a random sample is unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamcut.compiled.splitmix import draw_below
from streamcut.execution.feed import Streams
from streamcut.execution.lanes import Lanes
from streamcut.execution.row_buffer import ROW_BYTES
from streamcut.io.dataset import entry_bytes
from streamcut.io.manifest import Manifest, Statistics

STREAMS = (4, 2)  # places of a lane from which rows come at once: batches shrink before their number does
_MOST_ROWS = 8192
_RUN = 16  # rows fetched in one run: fetched alone, each would cost a full latency
_FULL = 1.5  # times the mean entries of a batch: the most that are put together


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Groups of about `nnz` entries, and `batch`, the number of groups in memory at once.

    `within`: a group is no larger than the data.
    """

    nnz: int
    batch: int
    within: bool = True

    def group_rows(self, statistics: Statistics) -> int:
        """Rows of a group, visited in random order; depends on the whole data."""
        most = min(_MOST_ROWS, statistics.n_rows) if self.within else _MOST_ROWS
        return min(max(1, self.nnz * statistics.n_rows // max(statistics.nnz, 1)), most)

    def batch_rows(self, statistics: Statistics) -> int:
        """Rows of a batch, which blocks of rows never split."""
        return self.batch * self.group_rows(statistics)

    def drawn(self, statistics: Statistics, passes: int, seed: int, *, mixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(order of the rows in a group, order of the groups in a batch) for the pass after `passes`; `mixed`: a single order."""
        random = np.random.default_rng((passes, seed))
        if mixed:
            rows, near = self._mixed_rows(statistics), self.near(statistics)
            if near == 0:
                return random.permutation(rows), np.zeros(1, np.int64)
            runs = (_RUN * random.permutation(-(-rows // _RUN))[:, None] + np.arange(_RUN)).reshape(-1)
            order = runs[runs < rows]
            for start in range(0, rows, near):
                random.shuffle(order[start : start + near])
            return order, np.zeros(1, np.int64)
        return random.permutation(self.group_rows(statistics)), random.permutation(self.batch)

    def near(self, statistics: Statistics) -> int:
        """Rows of a mixed batch fetched together: those of a group; 0: all, where there is a single batch."""
        return self.group_rows(statistics) if statistics.n_rows > self.batch_rows(statistics) else 0

    def fetched(self, statistics: Statistics, order: np.ndarray) -> np.ndarray:
        """The rows of the mixed `order` as fetched: ascending among rows fetched together."""
        near = self.near(statistics)
        if near == 0:
            return np.arange(len(order))
        return np.concatenate([np.sort(order[start : start + near]) for start in range(0, len(order), near)])

    def streams(self, statistics: Statistics, count: int, passes: int, seed: int) -> Streams:
        """The places from which the rows of batches are read in the pass after `passes`."""
        rows = self.batch_rows(statistics) // count
        return Streams(count, rows, self._entries_together(), (passes, seed))

    def has_streams(self, statistics: Statistics, lanes: Lanes) -> bool:
        """Whether a lane has more rows than a batch."""
        return max(stop - start for start, stop in pairwise(lanes.bounds)) > self.batch_rows(statistics)

    def stream_bytes(self, manifest: Manifest, count: int, row_bytes: int, *, ahead: bool = False) -> int:
        """Memory that a worker needs for `count` streams besides their read buffers; each row has `row_bytes` of row state.

        With `ahead` also for two more batches, one being scored and one being read or concluded, with three numbers per row.
        """
        rows = self.batch_rows(manifest.statistics)
        together = ROW_BYTES * rows + entry_bytes(manifest) * self._entries_together()
        more = 2 * (together + (row_bytes + 24) * rows) if ahead else 0
        return together + row_bytes * rows + more

    def _entries_together(self) -> int:
        return int(_FULL * self.nnz * self.batch)

    def mixing_bytes(self, statistics: Statistics) -> int:
        """Memory that a worker needs to visit all rows of a batch in random order: both orders, four numbers per row."""
        return 48 * self._mixed_rows(statistics)

    def _mixed_rows(self, statistics: Statistics) -> int:
        return min(self.batch_rows(statistics), statistics.n_rows)


def sample_free(keys: np.ndarray, free_below: float, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """Replace the keys (n) below `free_below`, those of free rows, in place by random numbers in [0, 1) that depend on `seed`
    and the rows' `numbers` (n) alone."""
    draw_below(free_below, numbers, np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64), keys)
