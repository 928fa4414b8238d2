"""Epochs of stochastic methods over rows on disk: shards come in random order, the rows of each shuffled.

This replaces their "uniformly at random", as in any out-of-core method. While one shard is trained on, a second thread reads and
decodes the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.runner import one_ahead
from streamcut.foundation.chunk import Chunk
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes


@dataclass(frozen=True, slots=True)
class Group:
    """`rows`, valid until the next group but one is requested, and the order (n,) to visit them in."""

    rows: Chunk
    order: np.ndarray


class Epochs:
    """The epochs of `feed`'s rows. `ahead`: the next shard is read while one is in use."""

    def __init__(self, feed: Feed, seed: int, *, ahead: bool = True) -> None:
        self.traffic = Traffic()
        self._feed, self._seed, self._ahead = feed, seed, ahead
        self._buffers: list[object | None] = []

    def groups(self, epoch: int, skipped: int = 0) -> Iterator[Group]:
        """The shards of an epoch, without its first `skipped` rows."""
        sizes = np.array([shard.rows for shard in self._feed.data.manifest.shards])
        numbers = np.random.default_rng((self._seed, epoch)).permutation(len(sizes))
        ends = np.cumsum(sizes[numbers])
        gone = int(np.searchsorted(ends, skipped, side="right"))
        missing = skipped - (int(ends[gone - 1]) if gone else 0)
        self._buffers = self._buffers or [self._feed.buffers() for _ in range(1 + self._ahead)]
        groups = (self._read(epoch, number, place % len(self._buffers)) for place, number in enumerate(numbers[gone:].tolist()))
        with ThreadPoolExecutor(1, "reader") as pool:
            for group in one_ahead(pool, groups) if self._ahead else groups:
                yield replace(group, order=group.order[missing:])
                missing = 0

    def _read(self, epoch: int, number: int, buffer: int) -> Group:
        rows = replace(self._feed.shard(number, self._buffers[buffer], self.traffic), qid=None)
        return Group(rows, np.random.default_rng((self._seed, epoch, number)).permutation(rows.n_rows))


def epochs_bytes(manifest: Manifest, *, ahead: bool = True) -> int:
    """Bytes of the shards in use, each with the order of its rows."""
    orders = 8 * max(shard.rows for shard in manifest.shards)
    return (1 + ahead) * (orders + (0 if manifest.backend == "memory" else buffer_bytes(manifest)))
