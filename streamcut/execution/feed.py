"""Supplies a lane with rows: pinned shards from memory, others read, verified and decoded into the worker's buffers.

While a shard is processed, the kernel fetches the lane's next one from disk, and while that is decoded the one after it: a
pass over cold files costs the longer of the two, not their sum (scripts/benchmarks/bench_cold.py). A read-ahead thread would
need its own buffers. Shards are not dropped from the page cache after use: what stays there is read faster in the next pass.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle, islice, pairwise
from typing import NamedTuple, Self

import numpy as np

from streamcut.execution.row_buffer import RowBuffer, joining_buffer
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.files import failpoint
from streamcut.io.dataset import Dataset, first_rows, shard_bytes

BLOCK_NNZ = 1 << 19  # entries visited at once: still in the last-level cache when the second kernel runs
BLOCK_ROWS = 1 << 16  # rows visited at once, even if they have few entries
EXPECTED = 32  # shards announced to a data set before they are read
GROUP_ROWS = 1 << 16  # rows of several groups visited at once


@dataclass(slots=True)
class Traffic:
    """What a pass processed: rows, entries, bytes decoded from storage, rows already in memory, and bytes of all rows."""

    rows: int = 0
    nnz: int = 0
    bytes_read: int = 0
    rows_pinned: int = 0
    bytes_computed: int = 0

    def __iadd__(self, other: Traffic) -> Self:
        self.rows += other.rows
        self.nnz += other.nnz
        self.bytes_read += other.bytes_read
        self.rows_pinned += other.rows_pinned
        self.bytes_computed += other.bytes_computed
        return self


class Readings:
    """How often the rows of a data set were read: rows that feeds supplied, from the store or from memory, ÷ its row count.

    Visits to the row state alone and copies in row caches don't count.
    """

    def __init__(self, n_rows: int) -> None:
        self.rows = 0
        self._of = max(1, n_rows)
        self._lock = threading.Lock()

    def add(self, rows: int) -> None:
        """Count `rows` more; any thread may call it."""
        with self._lock:
            self.rows += rows

    @property
    def value(self) -> float:
        """The readings so far: 1.0 after one pass through all rows."""
        return self.rows / self._of


class Streams(NamedTuple):
    """Rows of a lane come from several `places` at once, in pieces of `rows` rows, one from each place in turn.

    Each place reads its own part of the lane, from a start set by `seed` to the end, then from the beginning. Pieces
    combined in a block have at most `entries`, unless a single one has more.
    """

    places: int
    rows: int
    entries: int
    seed: tuple[int, ...]

    def ranges(self, start: int, stop: int) -> list[list[tuple[int, int]]]:
        """The ranges of rows that each place reads, in order, of a lane with rows start:stop."""
        bounds = np.unique([start, *range(start - start % self.rows + self.rows, stop, self.rows), stop])
        pieces, found = len(bounds) - 1, []
        random = np.random.default_rng((*self.seed, start))
        for first, last in pairwise(pieces * place // self.places for place in range(self.places + 1)):
            at = int(random.integers(first, max(last, first + 1)))
            turns = int(bounds[first]), int(bounds[at]), int(bounds[last])
            found.append([(begin, end) for begin, end in (turns[1:], turns[:2]) if begin < end])
        return found


@dataclass
class Feed:
    """Blocks of rows of `data`. `pinned` shards are read once, kept decoded and shared by all workers.

    Which shards are pinned is fixed beforehand: a cache that evicts (LRU) never hits on a cyclic scan. `readings` counts the rows
    supplied.
    """

    data: Dataset
    pinned: frozenset[int] = frozenset()
    _kept: dict[int, Chunk] = field(default_factory=dict)
    _locks: dict[int, threading.Lock] = field(default_factory=dict)
    _own: threading.local = field(default_factory=threading.local)  # per thread: `joined`, its RowBuffers

    def __post_init__(self) -> None:
        manifest = self.data.manifest
        self._first = first_rows(manifest)
        self._sizes = [shard_bytes(manifest, shard) for shard in manifest.shards]
        self._locks = {shard: threading.Lock() for shard in self.pinned}
        self.readings = Readings(manifest.statistics.n_rows)

    def buffers(self) -> object | None:
        """Buffers for one worker, or None when no shard will ever need them."""
        return self.data.buffers() if len(self.pinned) < len(self.data.manifest.shards) else None

    def mixed(
        self, start: int, stop: int, streams: Streams, buffers: list[object | None], traffic: Traffic, *, ahead: int = 0
    ) -> Generator[Chunk]:
        """Rows start:stop in pieces from several places at once, each of which reads with its own `buffers`.

        Shard boundaries are invisible. A block is valid until the next; one of several pieces, until `ahead` more have come.
        """
        sizes = streams.places * streams.rows, streams.entries
        together = cycle([self._buffer(("together", n), lambda: RowBuffer(self.data.manifest, *sizes)) for n in range(1 + ahead)])
        found = streams.ranges(start, stop)
        coming = deque(shard for shard, *_ in self._in_turn(found, streams.rows))
        places = [
            self._pieces(ranges, streams.rows, own, traffic, place, coming)
            for place, (ranges, own) in enumerate(zip(found, buffers, strict=True))
        ]
        self._expect_all(coming)
        while turn := [piece for place in places if (piece := next(place, None)) is not None]:
            first = 0
            for last in range(1, len(turn) + 1):
                if last == len(turn) or sum(piece.nnz for piece in turn[first : last + 1]) > streams.entries:
                    yield _together(next(together), turn[first:last])
                    first = last

    def _in_turn(self, found: list[list[tuple[int, int]]], rows: int) -> list[tuple[int, int, int]]:
        """(shard, first row, last + 1) in the order in which places that read these ranges piece by piece reach them."""
        turns = []
        for place, ranges in enumerate(found):
            before = 0
            for start, stop in ranges:
                first = int(np.searchsorted(self._first, start, side="right")) - 1
                for shard in range(first, int(np.searchsorted(self._first, stop))):
                    begin, end = max(self._first[shard], start), min(self._first[shard + 1], stop)
                    turns.append((before + begin // rows - start // rows, place, shard, begin, end))
                before += -(-stop // rows) - start // rows
        return [turn[2:] for turn in sorted(turns)]

    def _pieces(
        self, ranges: list[tuple[int, int]], rows: int, buffers: object | None, traffic: Traffic, place: int, coming: deque[int]
    ) -> Iterator[Chunk]:
        """Rows of these ranges, split at the multiples of `rows`; `coming` are the shards of all places."""
        for start, stop in ranges:
            for block in self.blocks(start, stop, buffers, traffic, alignment=rows, place=place, coming=coming):
                first, last = block.first_row, block.first_row + block.n_rows
                bounds = [first, *range(first - first % rows + rows, last, rows), last]
                for begin, end in pairwise(bounds):
                    yield block.rows(begin - first, end - first)

    def blocks(
        self, start: int, stop: int, buffers: object | None, traffic: Traffic, *,
        alignment: int = 1, place: int = 0, coming: deque[int] | None = None,
    ) -> Iterator[Chunk]:  # fmt: skip
        """Rows start:stop in order, at most BLOCK_NNZ entries and BLOCK_ROWS rows at once; a block is valid until the next.

        `alignment`: blocks begin and end only at rows that are multiples of it, or at `start` and `stop`. Rows between two such
        boundaries that lie in different shards are joined, so shard boundaries are invisible. What lies between two of them is
        never split, nor is a long row. A thread runs one such sequence of blocks of a `place` at a time; `coming` are the
        shards it reads next for all its places.
        """
        joined = self._joined(alignment, place) if alignment > 1 else None
        waiting = False  # in `joined`: the rows after the last boundary, when their shard ended before the next one
        shard = bisect_right(self._first, start) - 1
        if coming is None:
            self._expect(shard, stop)
        while start < stop:
            last = min(stop, self._first[shard + 1])
            rows, pinned = self.rows_of(shard, start, last, buffers, traffic)
            if coming is None:
                self._expect(shard + 1, stop)
            else:
                coming.remove(shard)
                self._expect_all(coming)
            self._give(rows, shard, pinned, traffic)
            if joined is not None and waiting:
                missing = -start % alignment
                joined.add(rows.rows(0, missing))
                rows = rows.rows(min(missing, rows.n_rows), rows.n_rows)
                if rows.n_rows or last == stop or last % alignment == 0:
                    yield joined.chunk()
                    waiting = False
            whole = rows.n_rows if last == stop else max(rows.n_rows - last % alignment, 0)
            yield from _blocks(rows.rows(0, whole), alignment)
            if joined is not None and whole < rows.n_rows:
                joined.begin()
                joined.add(rows.rows(whole, rows.n_rows))
                waiting = True
            start, shard = last, shard + 1

    def groups(self, start: int, stop: int, buffers: object | None, traffic: Traffic, *, alignment: int = 1) -> Iterator[Chunk]:
        """Whole groups of equal qid that begin in rows start:stop, in blocks as above (a longer group is a block of its own).

        A lane may end inside a group, a shard never does: stores keep groups whole. With `alignment` above 1 blocks hold whole
        batches (`batch_numbers`); those that lie in different shards are joined.
        """
        if alignment == 1:
            for rows, bounds, _ in self._grouped(start, stop, buffers, traffic):
                yield from whole_groups(rows, bounds)
            return
        joined, waiting = self._joined(alignment, 0), -1  # the batch in `joined`, which may not be complete
        for rows, bounds, following in self._grouped(start, stop, buffers, traffic):
            batches = batch_numbers(rows.first_row + bounds, alignment)
            bounds = bounds[np.concatenate(([0], np.flatnonzero(np.diff(batches)) + 1, [len(batches)]))]
            more = following < stop and batches[-1] == 2 * (following // alignment)
            if waiting >= 0:
                known = int(batches[0] == waiting)
                joined.add(rows.rows(0, int(bounds[known])))
                bounds = bounds[known:]
                if len(bounds) > 1 or not more:
                    yield joined.chunk()
                    waiting = -1
            if len(bounds) > 1 and more:
                joined.begin()
                joined.add(rows.rows(int(bounds[-2]), int(bounds[-1])))
                bounds, waiting = bounds[:-1], int(batches[-1])
            yield from whole_groups(rows, bounds)

    def _grouped(
        self, start: int, stop: int, buffers: object | None, traffic: Traffic
    ) -> Iterator[tuple[Chunk, np.ndarray, int]]:
        """(a shard's groups that begin in rows start:stop, where each begins in them and the end, the next shard's row)."""
        shard = int(np.searchsorted(self._first, start, side="right")) - 1
        self._expect(shard, stop)
        while start < stop:
            found, pinned = self._shard(shard, buffers, traffic)
            chunk = replace(found, first_row=self._first[shard])
            following = self._first[shard + 1]
            self._expect(shard + 1, stop)
            starts = group_starts(chunk) + chunk.first_row
            first, last = np.searchsorted(starts, [start, min(stop, following)])
            bounds = starts[first : last + 1] - chunk.first_row
            if len(bounds) > 1:
                rows = chunk.rows(bounds[0], bounds[-1])
                self._give(rows, shard, pinned, traffic)
                yield rows, bounds - bounds[0], following
            start, shard = following, shard + 1

    def _expect(self, shard: int, stop: int) -> None:
        """Announce the shards from `shard` to row `stop` that are not in memory."""
        self._expect_all(range(shard, bisect_left(self._first, stop)))

    def _expect_all(self, shards: Iterable[int]) -> None:
        """Announce those of these shards that are not in memory, in reading order."""
        self.data.expect(*(each for each in islice(shards, EXPECTED) if each not in self._kept))

    def _joined(self, alignment: int, place: int) -> RowBuffer:
        return self._buffer((alignment, place), lambda: joining_buffer(self.data.manifest, alignment))

    def _buffer(self, name: object, make: Callable[[], RowBuffer]) -> RowBuffer:
        """This thread's buffer, allocated once."""
        known = self._own.__dict__.setdefault("joined", {})
        if name not in known:
            known[name] = make()
        return known[name]

    def _give(self, rows: Chunk, shard: int, pinned: bool, traffic: Traffic) -> None:
        """Count rows of a shard as supplied."""
        self.readings.add(rows.n_rows)
        traffic.rows += rows.n_rows
        traffic.nnz += rows.nnz
        traffic.rows_pinned += rows.n_rows * pinned
        traffic.bytes_computed += self._sizes[shard] * rows.n_rows // max(self.data.manifest.shards[shard].rows, 1)

    def rows_of(self, shard: int, start: int, stop: int, buffers: object | None, traffic: Traffic) -> tuple[Chunk, bool]:
        """Rows start:stop, which lie in a shard, and whether they were already in memory."""
        chunk, pinned = self._shard(shard, buffers, traffic)
        first = self._first[shard]
        return chunk.placed(first).rows(start - first, stop - first), pinned

    def _shard(self, shard: int, buffers: object | None, traffic: Traffic) -> tuple[Chunk, bool]:
        """The rows of a shard, and whether they were already in memory."""
        failpoint("train.shard")
        failpoint(f"train.shard.{shard}")
        if shard not in self.pinned:
            chunk = self.data.read(shard, buffers)
            traffic.bytes_read += self._sizes[shard]
            return chunk, False
        with self._locks[shard]:
            if known := shard in self._kept:
                return self._kept[shard], known
            self._kept[shard] = self.data.read(shard)
            traffic.bytes_read += self._sizes[shard]
            return self._kept[shard], known


def _together(buffer: RowBuffer, pieces: list[Chunk]) -> Chunk:
    if len(pieces) == 1:
        return pieces[0]
    buffer.begin()
    for piece in pieces:
        buffer.add(piece)
    ranges = tuple((piece.first_row, piece.first_row + piece.n_rows) for piece in pieces)
    return replace(buffer.chunk(), pieces=ranges)


def _blocks(chunk: Chunk, alignment: int) -> Iterator[Chunk]:
    start, n = 0, chunk.n_rows
    if 0 < n <= BLOCK_ROWS and chunk.nnz <= BLOCK_NNZ:
        yield chunk
        return
    while start < n:
        limit = chunk.indptr[start] + BLOCK_NNZ
        stop = min(int(np.searchsorted(chunk.indptr, limit, side="right")) - 1, start + BLOCK_ROWS)
        if stop < n:
            stop -= (chunk.first_row + stop) % alignment
            at_least = alignment - (chunk.first_row + start) % alignment
            stop = min(max(start + at_least, stop), n)
        yield chunk.rows(start, stop)
        start = stop


def batch_numbers(bounds: np.ndarray, alignment: int) -> np.ndarray:
    """The batch of each of the groups that begin at rows `bounds`, int64; the last entry is the end of the last group.

    Groups that lie within rows j · alignment to (j + 1) · alignment are batch 2j. One that begins there and ends later is batch
    2j + 1, alone: batches with several groups have at most `alignment` rows.
    """
    begin, end = bounds[:-1] // alignment, (bounds[1:] - 1) // alignment
    return 2 * begin + (end > begin)


def whole_groups(chunk: Chunk, starts: np.ndarray) -> Iterator[Chunk]:
    """Rows `starts[0]:starts[-1]` of `chunk` in blocks that begin and end at `starts`.

    They have at most BLOCK_NNZ entries and GROUP_ROWS rows, unless there are more between two of `starts`.
    """
    first, groups, entries = 0, len(starts) - 1, chunk.indptr[starts]
    while first < groups:
        last = int(np.searchsorted(entries, entries[first] + BLOCK_NNZ, side="right")) - 1
        last = min(last, int(np.searchsorted(starts, starts[first] + GROUP_ROWS, side="right")) - 1)
        last = min(max(last, first + 1), groups)
        yield chunk.rows(int(starts[first]), int(starts[last]))
        first = last
