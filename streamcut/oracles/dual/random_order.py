"""The random order in which dual ascent visits rows: groups that fit a cache level, and batches of these.

Where the loss is smooth, all rows of a batch come in one random order ("mixed"): the dual is then strongly concave, ascent would
converge linearly, and neighbours that always come together are what keeps it from that (solvers/bundle_dca.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.execution.row_buffer import joined_bytes
from streamcut.io.manifest import Manifest, Statistics

_MOST_ROWS = 8192


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Groups of about `nnz` entries, and the `batch` of them whose rows are in memory at once.

    `within`: a group is no larger than the data.
    """

    nnz: int
    batch: int
    within: bool = True

    def group_rows(self, statistics: Statistics) -> int:
        """Rows that are visited in random order among themselves; it depends on the whole data, not on shards."""
        most = min(_MOST_ROWS, statistics.n_rows) if self.within else _MOST_ROWS
        return min(max(1, self.nnz * statistics.n_rows // max(statistics.nnz, 1)), most)

    def batch_rows(self, statistics: Statistics) -> int:
        """Rows of a batch, which blocks of rows never part."""
        return self.batch * self.group_rows(statistics)

    def drawn(self, statistics: Statistics, passes: int, seed: int, *, mixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(order of the rows in a group, order of the groups in a batch) for the pass after `passes`; `mixed`: it is one."""
        random = np.random.default_rng((passes, seed))
        if mixed:
            return random.permutation(self._mixed_rows(statistics)), np.zeros(1, np.int64)
        return random.permutation(self.group_rows(statistics)), random.permutation(self.batch)

    def mixing_bytes(self, statistics: Statistics) -> int:
        """Memory that a worker needs to visit all rows of a batch in random order: that order, shares, waiting rows, blocks."""
        return 32 * self._mixed_rows(statistics)

    def _mixed_rows(self, statistics: Statistics) -> int:
        return min(self.batch_rows(statistics), statistics.n_rows)

    def joined_bytes(self, manifest: Manifest) -> int:
        """Memory that a worker needs for the rows of a batch that lie in different shards."""
        return joined_bytes(manifest, self.batch_rows(manifest.statistics))

    def room_bytes(self, manifest: Manifest, classes: int) -> int:
        """The same, and for the current group of `classes` classes."""
        return 8 * self.group_rows(manifest.statistics) * (classes + 2) + self.joined_bytes(manifest)
