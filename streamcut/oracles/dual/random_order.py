"""The random order in which dual ascent over several classes visits rows: groups that fit a cache level, and batches of these."""

from __future__ import annotations

from dataclasses import dataclass

from streamcut.execution.joined_rows import joined_bytes
from streamcut.io.manifest import Manifest, Statistics

_MOST_ROWS = 8192


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Groups of about `nnz` entries, and the `batch` of them whose rows are in memory at once."""

    nnz: int
    batch: int

    def group_rows(self, statistics: Statistics) -> int:
        """Rows that are visited in random order among themselves; it depends on the whole data, not on shards."""
        return min(max(1, self.nnz * statistics.n_rows // max(statistics.nnz, 1)), _MOST_ROWS, statistics.n_rows)

    def room_bytes(self, manifest: Manifest, classes: int) -> int:
        """Memory that a worker needs for the group at work, and for the rows of a batch that lie in different shards."""
        group = self.group_rows(manifest.statistics)
        return 8 * group * (classes + 2) + joined_bytes(manifest, self.batch * group)
