"""Regroups blocks of rows of any size into shards whose borders depend on the rows alone.

The rule: a shard takes as many whole groups as fit `shard_nnz` entries and `shard_rows(shard_nnz)` rows, and at least one.
A group is a run of equal qid; without qid each row is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.spec import shard_rows

INT32_MAX = 2**31 - 1


class ShardRows:
    """Memory for the rows of one shard: `capacity` entries before it must grow; reused after `clear`."""

    def __init__(self, capacity: int) -> None:
        self._indices = np.empty(capacity, np.int32)
        self._data = np.empty(capacity, np.float64)
        self._indptr = np.zeros(1024, np.int64)
        self._extra: dict[str, np.ndarray] = {}  # y, qid, weight
        self.rows = self.nnz = 0

    def clear(self) -> None:
        if self._indices.dtype != np.int32:
            self._indices = np.empty(len(self._indices), np.int32)
        self.rows = self.nnz = 0

    def append(self, chunk: Chunk) -> None:
        """Append a copy of the rows of `chunk`."""
        start, stop = int(chunk.indptr[0]), int(chunk.indptr[-1])
        rows, nnz = self.rows + chunk.n_rows, self.nnz + stop - start
        indices = chunk.indices[start:stop]
        self._indices = _with_room(self._indices, nnz, self.nnz)
        if indices.dtype != np.int32 and self._indices.dtype == np.int32 and len(indices) and indices.max() > INT32_MAX:
            self._indices = self._indices.astype(np.int64)
        self._indices[self.nnz : nnz] = indices
        self._data = _with_room(self._data, nnz, self.nnz)
        self._data[self.nnz : nnz] = 1.0 if chunk.data is None else chunk.data[start:stop]
        self._indptr = _with_room(self._indptr, rows + 1, self.rows + 1)
        np.add(chunk.indptr[1:], self.nnz - start, out=self._indptr[self.rows + 1 : rows + 1])
        for name, array in (("y", chunk.y), ("qid", chunk.qid), ("weight", chunk.weight)):
            if array is not None:
                room = _with_room(self._extra.get(name, np.empty(0, array.dtype)), rows, self.rows)
                room[self.rows : rows] = array
                self._extra[name] = room
        self.rows, self.nnz = rows, nnz

    def chunk(self) -> Chunk:
        """The rows collected so far, as views."""
        y = self._extra["y"][: self.rows]
        qid, weight = (self._extra[name][: self.rows] if name in self._extra else None for name in ("qid", "weight"))
        return Chunk(self._indptr[: self.rows + 1], self._indices[: self.nnz], self._data[: self.nnz], y, qid, weight)

    def split(self, row: int) -> Chunk | None:
        """Remove the rows from `row` on and return copies of them; None when there are none."""
        if row == self.rows:
            return None
        tail = self.chunk().rows(row, self.rows)
        start = int(tail.indptr[0])
        copied = Chunk(
            tail.indptr - start,
            tail.indices[start:].copy(),
            self._data[start : self.nnz].copy(),
            tail.y.copy(),
            None if tail.qid is None else tail.qid.copy(),
            None if tail.weight is None else tail.weight.copy(),
        )
        self.rows, self.nnz = row, start
        return copied


class ShardCutter:
    """Collects rows and cuts them into shards. `fresh` returns empty ShardRows; the caller owns what `add` yields."""

    def __init__(self, shard_nnz: int, fresh: Callable[[], ShardRows]) -> None:
        self._nnz, self._rows = shard_nnz, shard_rows(shard_nnz)
        self._fresh = fresh
        self._current: ShardRows | None = None
        self._columns: tuple[bool, bool] | None = None
        self._last_qid: int | None = None
        self._open = 0  # first row of the last group in the current shard

    def add(self, chunk: Chunk) -> Iterator[ShardRows]:
        """Append `chunk`; yields each shard that is complete."""
        columns = (chunk.qid is not None, chunk.weight is not None)
        if self._columns not in (None, columns):
            raise BadInputError("some blocks of rows have qid or weight and others do not")
        self._columns = columns
        row = 0
        while row < chunk.n_rows:
            current = self._current = self._current or self._fresh()
            stop = row + self._fitting(current, chunk, row)
            closed = self._closed(current, chunk, row)
            if stop == row and closed == 0:  # a group above the limit gets a shard of its own
                stop = row + 1 if chunk.qid is None else _end_of_group(chunk.qid, row)
            if stop > row:
                self._append(current, chunk.rows(row, stop))
                row = stop
                continue
            tail = current.split(closed)
            self._current = None
            yield current
            if tail is not None:
                self._current = self._fresh()
                self._current.append(tail)
            self._open = 0

    def rest(self) -> ShardRows | None:
        """The last shard, if any rows are left."""
        current, self._current = self._current, None
        return current if current is not None and current.rows else None

    def _fitting(self, current: ShardRows, chunk: Chunk, row: int) -> int:
        """The number of rows of `chunk` from `row` on that fit the current shard."""
        room = self._nnz - current.nnz
        if room < 0:
            return 0
        by_entries = int(np.searchsorted(chunk.indptr, chunk.indptr[row] + room, side="right")) - 1 - row
        return max(0, min(by_entries, self._rows - current.rows))

    def _closed(self, current: ShardRows, chunk: Chunk, row: int) -> int:
        """Rows of the current shard whose groups do not continue with row `row` of `chunk`."""
        goes_on = current.rows and chunk.qid is not None and chunk.qid[row] == self._last_qid
        return self._open if goes_on else current.rows

    def _append(self, current: ShardRows, chunk: Chunk) -> None:
        if chunk.qid is not None:
            before = chunk.qid[:1] if current.rows == 0 else np.array([self._last_qid])
            starts = np.flatnonzero(np.diff(chunk.qid, prepend=before))
            if len(starts):
                self._open = current.rows + int(starts[-1])
            self._last_qid = int(chunk.qid[-1])
        current.append(chunk)


def _end_of_group(qid: np.ndarray, row: int) -> int:
    others = np.flatnonzero(qid[row:] != qid[row])
    return row + int(others[0]) if len(others) else len(qid)


def _with_room(array: np.ndarray, needed: int, used: int) -> np.ndarray:
    """`array`, or a larger copy with its first `used` elements."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    larger[:used] = array[:used]
    return larger
