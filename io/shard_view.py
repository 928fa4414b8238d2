"""Some of the shards of a data set as a data set of their own: the folds of cross-validation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamcut.chunk import Chunk
from streamcut.io.dataset import Dataset, first_rows
from streamcut.io.manifest import StatisticsBuilder


class ShardView:
    """The rows of `shards` (numbers in `data`, increasing), counted from 0. Making one reads them once, for its statistics."""

    def __init__(self, data: Dataset, shards: Sequence[int]) -> None:
        self.inner = data
        self._shards = tuple(shards)
        self.path = data.path
        self.recipe = data.recipe
        whole = data.manifest
        builder, buffers = StatisticsBuilder(), data.buffers()
        for shard in self._shards:
            builder.add(data.read(shard, buffers))
        self.manifest = replace(
            whole,
            statistics=builder.finish(whole.statistics.n_features),
            shards=tuple(whole.shards[shard] for shard in self._shards),
            fingerprint=hashlib.sha256(f"{whole.fingerprint} {self._shards}".encode()).hexdigest(),
        )
        self._first_rows = first_rows(self.manifest)

    def buffers(self) -> Any:
        return self.inner.buffers()

    def read(self, shard: int, buffers: Any = None) -> Chunk:
        return replace(self.inner.read(self._shards[shard], buffers), first_row=self._first_rows[shard])

    def expect(self, shard: int) -> None:
        self.inner.expect(self._shards[shard])
