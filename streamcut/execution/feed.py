"""Supplies a lane with rows: pinned shards from memory, others read, verified and decoded into the worker's buffers.

While a shard is processed, the kernel fetches the lane's next one from disk, and while that is decoded the one after it: a
pass over cold files costs the longer of the two, not their sum. A read-ahead thread would need its own buffers. Shards are not
dropped from the page cache after use: what stays there is read faster in the next pass.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle, islice, pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.files import failpoint
from streamcut.io.dataset import Dataset, entry_dtypes, first_rows, shard_bytes
from streamcut.io.manifest import Manifest

ROW_BYTES = 32  # per row, at most, without its entries: indptr, y, qid, weight


class RowBuffer:
    """Capacity for `rows` rows with `entries` entries of the data of `manifest`: `begin`, then `add` part after part.

    Values have the smallest type that holds those of all shards. Memory is committed as it is written.
    """

    def __init__(self, manifest: Manifest, rows: int, entries: int) -> None:
        self._sizes = rows, entries
        self._value = entry_dtypes(manifest)[1]
        self._arrays: dict[str, np.ndarray] = {}
        self.begin()

    def begin(self) -> None:
        """Forget all rows."""
        self._rows = self._entries = self._first_row = 0

    def add(self, chunk: Chunk) -> None:
        """Append a copy of the next rows."""
        if self._rows == 0:
            self._first_row = chunk.first_row
        rows, entries = self._rows, self._entries
        self._rows, self._entries = rows + chunk.n_rows, entries + chunk.nnz
        there = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
        np.add(chunk.indptr, entries - there.start, out=self._array("indptr", np.int64, 0)[rows : self._rows + 1])
        self._array("indices", chunk.indices.dtype, 1)[entries : self._entries] = chunk.indices[there]
        if self._value is not None:
            self._array("data", self._value, 1)[entries : self._entries] = 1 if chunk.data is None else chunk.data[there]
        for name, array in (("y", chunk.y), ("qid", chunk.qid), ("weight", chunk.weight)):
            if array is not None:
                self._array(name, array.dtype, 0)[rows : self._rows] = array

    def chunk(self) -> Chunk:
        """The rows added, as views valid until the next `begin`."""
        lengths = {"indptr": self._rows + 1, "indices": self._entries, "data": self._entries}
        views = {name: array[: lengths.get(name, self._rows)] for name, array in self._arrays.items()}
        data, qid, weight = (views.get(name) for name in ("data", "qid", "weight"))
        return Chunk(views["indptr"], views["indices"], data, views["y"], qid, weight, self._first_row)

    def _array(self, name: str, dtype: DTypeLike, kind: int) -> np.ndarray:
        """Array `name` at full capacity, in rows (`kind` 0) or entries (1); elements never written take no memory."""
        if name not in self._arrays:
            self._arrays[name] = np.empty(self._sizes[kind] + 1, dtype)
        return self._arrays[name]


def with_entries_of(kept: np.ndarray, chunk: Chunk) -> Chunk:
    """The same rows, copied; those not `kept` have no entries."""
    lengths = np.diff(chunk.indptr)
    chosen, indptr = np.repeat(kept, lengths), np.append(0, np.cumsum(np.where(kept, lengths, 0)))
    there = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
    indices, data = chunk.indices[there][chosen], None if chunk.data is None else chunk.data[there][chosen]
    return Chunk(indptr, indices, data, chunk.y.copy(), first_row=chunk.first_row)


BLOCK_NNZ = 1 << 19  # entries visited at once: still in the last-level cache when the second kernel runs
BLOCK_ROWS = 1 << 16  # rows visited at once, even if they have few entries
EXPECTED = 32  # shards announced to a data set before they are read


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
    """Rows of a lane come from `number` streams at once, in pieces of `rows` rows, one from each stream in turn.

    A stream reads a part of the lane, from a start set by `seed` to the end, then from the beginning. Pieces
    combined in a block have at most `entries`, unless a single one has more.
    """

    number: int
    rows: int
    entries: int
    seed: tuple[int, ...]

    def ranges(self, start: int, stop: int) -> list[list[tuple[int, int]]]:
        """The ranges of rows that each stream reads, in order, of a lane with rows start:stop."""
        bounds = np.unique([start, *range(start - start % self.rows + self.rows, stop, self.rows), stop])
        pieces, ranges = len(bounds) - 1, []
        random = np.random.default_rng((*self.seed, start))
        for first, last in pairwise(pieces * stream // self.number for stream in range(self.number + 1)):
            at = int(random.integers(first, max(last, first + 1)))
            turns = int(bounds[first]), int(bounds[at]), int(bounds[last])
            ranges.append([(begin, end) for begin, end in (turns[1:], turns[:2]) if begin < end])
        return ranges


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
        """Rows start:stop in pieces from several streams at once, each of which reads with one of the `buffers`.

        A block is valid until the next; one of several pieces, until `ahead` more have come.
        """
        sizes = streams.number * streams.rows, streams.entries
        joined = self._own.__dict__.setdefault("joined", [])  # of this thread, allocated once
        joined += [RowBuffer(self.data.manifest, *sizes) for _ in range(len(joined), 1 + ahead)]
        together = cycle(joined[: 1 + ahead])
        spans = streams.ranges(start, stop)
        coming = deque(self._in_turn(spans, streams.rows))
        pieces = [
            self._pieces(ranges, streams.rows, buffer, traffic, coming) for ranges, buffer in zip(spans, buffers, strict=True)
        ]
        while turn := [piece for stream in pieces if (piece := next(stream, None)) is not None]:
            first = 0
            for last in range(1, len(turn) + 1):
                if last == len(turn) or sum(piece.nnz for piece in turn[first : last + 1]) > streams.entries:
                    yield _together(next(together), turn[first:last])
                    first = last

    def _in_turn(self, spans: list[list[tuple[int, int]]], rows: int) -> list[int]:
        """The shards in the order in which streams of these ranges, read piece by piece, reach them."""
        turns = []
        for stream, ranges in enumerate(spans):
            turn = 0
            for start, stop in ranges:
                first = int(np.searchsorted(self._first, start, side="right")) - 1
                for shard in range(first, int(np.searchsorted(self._first, stop))):
                    begin, end = max(self._first[shard], start), min(self._first[shard + 1], stop)
                    turns.append((turn, stream, shard))
                    turn += 1 + (end - 1) // rows - begin // rows
        return [shard for _, _, shard in sorted(turns)]

    def _pieces(
        self, ranges: list[tuple[int, int]], rows: int, buffers: object | None, traffic: Traffic, coming: deque[int]
    ) -> Iterator[Chunk]:
        """Rows of these ranges, split at multiples of `rows` and where shards end; `coming` are the shards of all streams."""
        for start, stop in ranges:
            for part in self._parts(start, stop, buffers, traffic, coming):
                first, last = part.first_row, part.first_row + part.n_rows
                for begin, end in pairwise([first, *range(first - first % rows + rows, last, rows), last]):
                    yield part.rows(begin - first, end - first)

    def blocks(
        self, start: int, stop: int, buffers: object | None, traffic: Traffic, *, groups: bool = False, together: int = 1
    ) -> Generator[Chunk]:
        """Rows start:stop in order, each block from one shard; it is valid until the next.

        A block has at most BLOCK_NNZ entries and BLOCK_ROWS rows, unless a single unit has more. Units are rows; with `groups`
        those of equal qid, all that begin in start:stop (a lane may end inside a group, a shard never does: stores keep groups
        whole). `together` above 1: the units that begin in so many rows of a shard's part of start:stop are one unit.
        """
        coming = deque(range(bisect_right(self._first, start) - 1, bisect_left(self._first, stop)))
        for part in self._parts(start, stop, buffers, traffic, coming, groups=groups):
            starts = group_starts(part) if groups else np.arange(part.n_rows + 1)
            if together > 1:
                first = np.searchsorted(starts, np.arange(0, part.n_rows, together))
                starts = starts[np.unique(np.append(first, len(starts) - 1))]
            yield from whole_units(part, starts)

    def _parts(
        self, start: int, stop: int, buffers: object | None, traffic: Traffic, coming: deque[int], *, groups: bool = False
    ) -> Generator[Chunk]:
        """Rows start:stop, or the groups that begin there, by shard; `coming`: the shards that this thread reads from now on."""
        self._expect_all(coming)
        while start < stop:
            shard = bisect_right(self._first, start) - 1
            first, last = self._first[shard], min(stop, self._first[shard + 1])
            chunk, pinned = self._shard(shard, buffers, traffic)
            begin, end = start - first, last - first
            if groups:
                starts = group_starts(chunk)
                begin, end = starts[np.searchsorted(starts, [begin, end])].tolist()
            coming.remove(shard)
            self._expect_all(coming)
            rows = self._counted(chunk.rows(begin, end), pinned, shard, traffic)
            if rows.n_rows:
                yield rows
            start = last

    def shard(self, number: int, buffers: object | None, traffic: Traffic) -> Chunk:
        """All rows of a shard, valid until the next use of `buffers`."""
        return self._counted(*self._shard(number, buffers, traffic), number, traffic)

    def _counted(self, rows: Chunk, pinned: bool, shard: int, traffic: Traffic) -> Chunk:
        """`rows` of a shard just read, counted as supplied."""
        self.readings.add(rows.n_rows)
        traffic.rows += rows.n_rows
        traffic.nnz += rows.nnz
        traffic.rows_pinned += rows.n_rows * pinned
        traffic.bytes_computed += self._sizes[shard] * rows.n_rows // max(self.data.manifest.shards[shard].rows, 1)
        return rows

    def _expect_all(self, shards: Iterable[int]) -> None:
        """Announce those of these shards that are not in memory, in reading order."""
        self.data.expect(*(shard for shard in islice(shards, EXPECTED) if shard not in self._kept))

    def _shard(self, shard: int, buffers: object | None, traffic: Traffic) -> tuple[Chunk, bool]:
        """The rows of a shard, and whether they were already in memory."""
        failpoint("train.shard")
        failpoint(f"train.shard.{shard}")
        if shard not in self.pinned:
            traffic.bytes_read += self._sizes[shard]
            return self.data.read(shard, buffers).placed(self._first[shard]), False
        with self._locks[shard]:
            if not (kept := shard in self._kept):
                self._kept[shard] = self.data.read(shard).placed(self._first[shard])
                traffic.bytes_read += self._sizes[shard]
            return self._kept[shard], kept


def _together(buffer: RowBuffer, pieces: list[Chunk]) -> Chunk:
    if len(pieces) == 1:
        return pieces[0]
    buffer.begin()
    for piece in pieces:
        buffer.add(piece)
    ranges = tuple((piece.first_row, piece.first_row + piece.n_rows) for piece in pieces)
    return replace(buffer.chunk(), pieces=ranges)


def whole_units(chunk: Chunk, starts: np.ndarray) -> Iterator[Chunk]:
    """The rows of `chunk` in blocks that begin and end at `starts`, the first of which is 0 and the last the number of rows.

    They have at most BLOCK_NNZ entries and BLOCK_ROWS rows, unless there are more between two of `starts`.
    """
    first, units, entries = 0, len(starts) - 1, chunk.indptr[starts]
    while first < units:
        last = int(np.searchsorted(entries, entries[first] + BLOCK_NNZ, side="right")) - 1
        last = min(last, int(np.searchsorted(starts, starts[first] + BLOCK_ROWS, side="right")) - 1)
        last = min(max(last, first + 1), units)
        yield chunk.rows(int(starts[first]), int(starts[last]))
        first = last
