"""What training and prediction need of a data set, whatever stores it."""

from __future__ import annotations

from typing import Any, Protocol

from streamcut.chunk import Chunk
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.recipe.recipe import Recipe


class Dataset(Protocol):
    """Shards of rows. Reading is safe from several threads when each has its own buffers."""

    manifest: Manifest
    path: str | None  # None when it lives in memory

    @property
    def recipe(self) -> Recipe | None:
        """How its rows became features, None when nobody has said it."""

    def buffers(self) -> Any:
        """Reusable memory for one reading thread, large enough for every shard (see `shard_bytes`)."""

    def read(self, shard: int, buffers: Any = None) -> Chunk:
        """Shard number `shard`, verified. With `buffers` the arrays are views into them, valid until their next use.

        `y` and `weight` are float64, `qid` int64, `data` None for a shard whose values are all 1.
        Raises CorruptError naming the shard and the array.
        """

    def expect(self, shard: int) -> None:
        """Shard number `shard` will be read soon: whatever can be fetched of it meanwhile may be. Never fails."""


def first_rows(manifest: Manifest) -> list[int]:
    """Number of the first row of each shard, and the row count at the end (length shards + 1)."""
    rows = [0]
    for shard in manifest.shards:
        rows.append(rows[-1] + shard.rows)
    return rows


def shard_bytes(manifest: Manifest, shard: ShardInfo) -> int:
    """Bytes of memory that a decoded shard occupies."""
    index = 4 if manifest.statistics.n_features <= 2**31 - 1 else 8
    value = 0 if shard.ones else {"int8": 1, "float32": 4, "float64": 8}[shard.arrays["data"].dtype]
    extra = (manifest.statistics.groups is not None) + (manifest.statistics.weight_sum is not None)
    return shard.nnz * (index + value) + (shard.rows + 1) * 8 + shard.rows * 8 * (1 + extra)
