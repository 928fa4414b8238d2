"""Epochs over rows on disk in random order: groups of consecutive rows in random order, the rows of each shuffled.

"Uniformly at random" of stochastic methods means this here, as for anything that reads more than memory holds. Groups are ranges
of rows that depend on the size of the data alone, never on shards, so the order of an epoch is the same however rows are stored.
While one group is trained on, a second thread reads and decodes the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from streamcut.chunk import Chunk
from streamcut.execution.feed import Feed, Traffic
from streamcut.io.dataset import first_rows
from streamcut.io.manifest import Manifest, Statistics

GROUP_NNZ = 1 << 21  # entries of a group, about


@dataclass(frozen=True, slots=True)
class Group:
    """`rows` in memory of their own until the next group but one is asked for, and the order (n,) to visit them in."""

    rows: Chunk
    order: np.ndarray


def group_starts(statistics: Statistics) -> np.ndarray:
    """First rows of the groups, and the row count at the end."""
    n = statistics.n_rows
    count = max(1, -(-statistics.nnz // GROUP_NNZ))
    return np.arange(min(count, n) + 1) * n // min(count, n)


class Epochs:
    """The epochs of `feed`'s rows. `ahead`: the next group is read while one is at work."""

    def __init__(self, feed: Feed, seed: int, *, ahead: bool = True) -> None:
        manifest = feed.data.manifest
        self.starts = group_starts(manifest.statistics)
        self.traffic = Traffic()
        self._feed = feed
        self._seed = seed
        self._ahead = ahead
        self._rooms = [_Room(manifest) for _ in range(2 if ahead else 1)]
        self._buffers: object | None = None

    def groups(self, epoch: int, skipped: int = 0) -> Iterator[Group]:
        """The groups of an epoch, of which the first `skipped` rows are left out."""
        numbers = np.random.default_rng((self._seed, epoch)).permutation(len(self.starts) - 1)
        ends = np.cumsum(np.diff(self.starts)[numbers])
        gone = int(np.searchsorted(ends, skipped, side="right"))
        rest = numbers[gone:].tolist()
        missing = skipped - (int(ends[gone - 1]) if gone else 0)
        for group in self._read_ahead(epoch, rest) if self._ahead else (self._read(epoch, n, self._rooms[0]) for n in rest):
            yield replace(group, order=group.order[missing:])
            missing = 0

    def _read_ahead(self, epoch: int, numbers: list[int]) -> Iterator[Group]:
        with ThreadPoolExecutor(1, "reader") as pool:
            following = None
            for place, number in enumerate(numbers):
                group = self._read(epoch, number, self._rooms[0]) if following is None else following.result()
                if place + 1 < len(numbers):
                    following = pool.submit(self._read, epoch, numbers[place + 1], self._rooms[(place + 1) % 2])
                yield group

    def _read(self, epoch: int, number: int, room: _Room) -> Group:
        if self._buffers is None:
            self._buffers = self._feed.buffers()
        start, stop = int(self.starts[number]), int(self.starts[number + 1])
        rows = room.filled(start, stop, self._feed.blocks(start, stop, self._buffers, self.traffic))
        return Group(rows, np.random.default_rng((self._seed, epoch, number)).permutation(stop - start))


class _Room:
    """Memory for one group, used again and again."""

    def __init__(self, manifest: Manifest) -> None:
        rows, nnz, index, value = _largest(manifest)
        weighted = manifest.statistics.weight_sum is not None
        self._indptr, self._indices = np.empty(rows + 1, np.int64), np.empty(nnz, index)
        self._data = None if value is None else np.empty(nnz, value)
        self._y, self._weight = np.empty(rows), np.empty(rows) if weighted else None

    def filled(self, start: int, stop: int, blocks: Iterator[Chunk]) -> Chunk:
        """Copies of rows start:stop."""
        n, at, entries = stop - start, 0, 0
        self._indptr[0] = 0
        for block in blocks:
            rows, taken = slice(at, at + block.n_rows), slice(entries, entries + block.nnz)
            first, last = int(block.indptr[0]), int(block.indptr[-1])
            np.add(block.indptr[1:], entries - first, out=self._indptr[at + 1 : rows.stop + 1])
            self._indices[taken] = block.indices[first:last]
            if self._data is not None:
                self._data[taken] = 1 if block.data is None else block.data[first:last]
            self._y[rows] = block.y
            if self._weight is not None:
                self._weight[rows] = block.weight
            at, entries = rows.stop, taken.stop
        data, weight = self._data, self._weight
        return Chunk(
            self._indptr[: n + 1], self._indices[:entries], None if data is None else data[:entries], self._y[:n],
            weight=None if weight is None else weight[:n], first_row=start,
        )  # fmt: skip


def epochs_bytes(manifest: Manifest, *, ahead: bool = True) -> int:
    """Bytes that the groups at work take."""
    rows, nnz, index, value = _largest(manifest)
    entry = np.dtype(index).itemsize + (0 if value is None else np.dtype(value).itemsize)
    return (1 + ahead) * (nnz * entry + rows * 32)


def _largest(manifest: Manifest) -> tuple[int, int, str, str | None]:
    """Rows and (at most) entries of the largest group, and the dtypes of feature numbers and values (None: all are 1)."""
    starts, firsts = group_starts(manifest.statistics), np.asarray(first_rows(manifest))
    longest = manifest.statistics.max_row_nnz
    most = 0
    for start, stop in pairwise(starts.tolist()):
        first, last = np.searchsorted(firsts, [start, stop - 1], side="right") - 1
        entries = 0
        for shard in range(int(first), int(last) + 1):
            rows = min(stop, firsts[shard + 1]) - max(start, firsts[shard])
            entries += min(manifest.shards[shard].nnz, int(rows) * longest)
        most = max(most, entries)
    values = {shard.arrays["data"].dtype for shard in manifest.shards if not shard.ones}
    index = "int32" if manifest.statistics.n_features <= 2**31 - 1 else "int64"
    return int(np.diff(starts).max()), most, index, np.result_type(*values).name if values else None
