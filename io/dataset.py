"""What training and prediction need of a data set, however it is stored."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.shown import Shown
from streamcut.foundation.units import format_bytes
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.stores.spec import shard_rows
from streamcut.protocols import Dataset


def is_dataset(data: object) -> TypeGuard[Dataset]:
    """Whether `data` is an opened data set."""
    return hasattr(data, "manifest")


class ShownDataset(Shown):
    """Mix-in of data sets: rows, features, shards in a line or a table."""

    manifest: Manifest
    path: str | None

    @property
    def held_bytes(self) -> int:
        """Memory in addition to the buffers of readers: chunks of a remote store in flight."""
        return 0

    def shown(self) -> dict[str, object]:
        statistics, sizes = self.manifest.statistics, [shard_bytes(self.manifest, shard) for shard in self.manifest.shards]
        return {
            "path": self.path,
            "rows": statistics.n_rows,
            "features": statistics.n_features,
            "nnz": statistics.nnz,
            "labels": None if statistics.labels is None else len(statistics.labels),
            "groups": statistics.groups,
            "shards": len(sizes),
            "decoded": format_bytes(sum(sizes)),
        }


class View(ShownDataset):
    """Base of data sets that change the rows of `inner` while they are read."""

    def __init__(self, inner: Dataset) -> None:
        self.inner, self.path, self.recipe = inner, inner.path, inner.recipe

    def buffers(self) -> Any:
        return self.inner.buffers()

    def expect(self, *shards: int) -> None:
        self.inner.expect(*shards)

    @property
    def held_bytes(self) -> int:
        return self.inner.held_bytes


def first_rows(manifest: Manifest) -> list[int]:
    """Number of the first row of each shard, and the row count at the end (length shards + 1)."""
    rows = [0]
    for shard in manifest.shards:
        rows.append(rows[-1] + shard.rows)
    return rows


def shard_cuts(rows: Chunk, shard_nnz: int) -> list[tuple[int, int]]:
    """(start, stop) of each shard of `rows`: as many whole groups of equal qid (without qid: rows) as fit `shard_nnz` entries
    and `shard_rows(shard_nnz)` rows, and at least one."""
    n, indptr, allowed = rows.n_rows, rows.indptr, group_starts(rows)[1:]
    ends, cuts, start = indptr[allowed], list[tuple[int, int]](), 0
    while start < n:
        fits = np.searchsorted(ends, indptr[start] + shard_nnz, side="right")
        fits = min(fits, np.searchsorted(allowed, start + shard_rows(shard_nnz), side="right"))
        first = np.searchsorted(allowed, start, side="right")
        stop = int(allowed[max(first, fits - 1)])
        cuts.append((start, stop))
        start = stop
    return cuts


def entry_dtypes(manifest: Manifest) -> tuple[str, str | None]:
    """The smallest types that hold all feature numbers, and the values of all shards (None: they are all 1)."""
    values = {shard.arrays["data"].dtype for shard in manifest.shards if not shard.ones}
    index = "int32" if manifest.statistics.n_features <= 2**31 - 1 else "int64"
    return index, np.result_type(*values).name if values else None


def entry_bytes(manifest: Manifest) -> int:
    """Bytes of an entry with these types."""
    index, value = entry_dtypes(manifest)
    return np.dtype(index).itemsize + (0 if value is None else np.dtype(value).itemsize)


def shard_bytes(manifest: Manifest, shard: ShardInfo) -> int:
    """Bytes of memory that a decoded shard occupies."""
    index = 4 if manifest.statistics.n_features <= 2**31 - 1 else 8
    value = 0 if shard.ones else {"int8": 1, "float32": 4, "float64": 8}[shard.arrays["data"].dtype]
    extra = (manifest.statistics.groups is not None) + (manifest.statistics.weight_sum is not None)
    return shard.nnz * (index + value) + (shard.rows + 1) * 8 + shard.rows * 8 * (1 + extra)
