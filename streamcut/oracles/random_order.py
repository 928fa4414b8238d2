"""The random order in which dual ascent visits rows: groups that fit a cache level, and batches of groups.

All rows of a batch come in one random order: neighbours that always come together slow down convergence
(solvers/columns.md). For the same reason a lane of several batches is read from several places at once,
different in each pass, where memory allows: batches combine pieces of each place.

A batch is larger than a cache level. So the rows of its random order come in runs: as many as a group has are fetched in memory
order, and then take their steps in any order.

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
    """Groups of about `nnz` entries, and `batch`, the number of groups in memory at once."""

    nnz: int
    batch: int

    def group_rows(self, statistics: Statistics) -> int:
        """Rows of a group, visited in random order; depends on the whole data."""
        return min(max(1, self.nnz * statistics.n_rows // max(statistics.nnz, 1)), _MOST_ROWS)

    def batch_rows(self, statistics: Statistics) -> int:
        """Rows of a batch, which blocks of rows never split."""
        return self.batch * self.group_rows(statistics)

    def drawn(self, statistics: Statistics, passes: int, seed: int) -> np.ndarray:
        """The order of the rows of a batch in the pass after `passes`. Rows of a group are fetched together."""
        random, rows = np.random.default_rng((passes, seed)), min(self.batch_rows(statistics), statistics.n_rows)
        if statistics.n_rows <= self.batch_rows(statistics):  # a single batch
            return random.permutation(rows)
        runs = (_RUN * random.permutation(-(-rows // _RUN))[:, None] + np.arange(_RUN)).reshape(-1)
        return runs[runs < rows]

    def streams(self, statistics: Statistics, count: int, passes: int, seed: int) -> Streams:
        """The places from which the rows of batches are read in the pass after `passes`."""
        rows = self.batch_rows(statistics) // count
        return Streams(count, rows, self._entries_together(), (passes, seed))

    def has_streams(self, statistics: Statistics, lanes: Lanes) -> bool:
        """Whether a lane has more rows than a batch."""
        return max(stop - start for start, stop in pairwise(lanes.bounds)) > self.batch_rows(statistics)

    def stream_bytes(self, manifest: Manifest, count: int, row_bytes: int) -> int:
        """Memory that a worker needs for `count` streams besides their read buffers; each row has `row_bytes` of row state.

        There are three batches: one takes steps, one is being scored, and one being read or written back.
        """
        rows = self.batch_rows(manifest.statistics)
        together = ROW_BYTES * rows + entry_bytes(manifest) * self._entries_together() + row_bytes * rows
        return 3 * together

    def _entries_together(self) -> int:
        return int(_FULL * self.nnz * self.batch)

    def mixing_bytes(self, statistics: Statistics) -> int:
        """Memory that a worker needs to visit all rows of a batch in random order: both orders, four numbers per row."""
        return 48 * min(self.batch_rows(statistics), statistics.n_rows)


def sample_free(keys: np.ndarray, free_below: float, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """Replace the keys (n) below `free_below`, those of free rows, in place by random numbers in [0, 1) that depend on `seed`
    and the rows' `numbers` (n) alone."""
    draw_below(free_below, numbers, np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64), keys)
