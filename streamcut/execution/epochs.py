"""Epochs over rows on disk: groups of consecutive rows come in random order, the rows of each shuffled.

This replaces the "uniformly at random" of stochastic methods, as in any out-of-core method. Groups are ranges
of rows that depend on the size of the data alone, never on shards, so the order of an epoch doesn't depend on storage.
While one group is trained on, a second thread reads and decodes the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.row_buffer import RowBuffer
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.interrupts import result_of
from streamcut.io.dataset import entry_bytes, first_rows, most_entries
from streamcut.io.manifest import Manifest, Statistics

GROUP_NNZ = 1 << 21  # entries per group, approximately
_ROW_BYTES = 32  # per row, without its entries: indptr, y, weight, its place in the order


@dataclass(frozen=True, slots=True)
class Group:
    """`rows`, valid until the next group but one is requested, and the order (n,) to visit them in."""

    rows: Chunk
    order: np.ndarray


def group_starts(statistics: Statistics) -> np.ndarray:
    """First rows of the groups, and the row count at the end."""
    n = statistics.n_rows
    count = max(1, -(-statistics.nnz // GROUP_NNZ))
    return np.arange(min(count, n) + 1) * n // min(count, n)


class Epochs:
    """The epochs of `feed`'s rows. `ahead`: the next group is read while one is in use."""

    def __init__(self, feed: Feed, seed: int, *, ahead: bool = True) -> None:
        manifest = feed.data.manifest
        self.starts = group_starts(manifest.statistics)
        self.traffic = Traffic()
        self._feed = feed
        self._seed = seed
        self._ahead = ahead
        self._copies = [RowBuffer(manifest, *_largest(manifest)) for _ in range(2 if ahead else 1)]
        self._buffers: object | None = None

    def groups(self, epoch: int, skipped: int = 0) -> Iterator[Group]:
        """The groups of an epoch without its first `skipped` rows."""
        numbers = np.random.default_rng((self._seed, epoch)).permutation(len(self.starts) - 1)
        ends = np.cumsum(np.diff(self.starts)[numbers])
        gone = int(np.searchsorted(ends, skipped, side="right"))
        rest = numbers[gone:].tolist()
        missing = skipped - (int(ends[gone - 1]) if gone else 0)
        for group in self._read_ahead(epoch, rest) if self._ahead else (self._read(epoch, n, self._copies[0]) for n in rest):
            yield replace(group, order=group.order[missing:])
            missing = 0

    def _read_ahead(self, epoch: int, numbers: list[int]) -> Iterator[Group]:
        with ThreadPoolExecutor(1, "reader") as pool:
            following = None
            for place, number in enumerate(numbers):
                group = self._read(epoch, number, self._copies[0]) if following is None else result_of(following)
                if place + 1 < len(numbers):
                    following = pool.submit(self._read, epoch, numbers[place + 1], self._copies[(place + 1) % 2])
                yield group

    def _read(self, epoch: int, number: int, buffer: RowBuffer) -> Group:
        if self._buffers is None:
            self._buffers = self._feed.buffers()
        start, stop = int(self.starts[number]), int(self.starts[number + 1])
        buffer.begin()
        for block in self._feed.blocks(start, stop, self._buffers, self.traffic):
            buffer.add(replace(block, qid=None))
        return Group(buffer.chunk(), np.random.default_rng((self._seed, epoch, number)).permutation(stop - start))


def epochs_bytes(manifest: Manifest, *, ahead: bool = True) -> int:
    """Bytes of the groups in use."""
    rows, entries = _largest(manifest)
    return (1 + ahead) * (entries * entry_bytes(manifest) + rows * _ROW_BYTES)


def _largest(manifest: Manifest) -> tuple[int, int]:
    """Rows and (at most) entries of the largest group."""
    starts, first = group_starts(manifest.statistics), first_rows(manifest)
    most = max(most_entries(manifest, first, start, stop) for start, stop in pairwise(starts.tolist()))
    return int(np.diff(starts).max()), most
