"""Rows that lie in several shards, put together in memory that one reading thread uses again and again.

New arrays each time would cost page faults, and the allocator keeps much of what is given back: 40 MB more at the peak.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.io.dataset import first_rows
from streamcut.io.manifest import Manifest

_ROW_BYTES = 32  # of a row beside its entries, at most: indptr, y, qid, weight


class JoinedRows:
    """Room for the rows between two multiples of `alignment` that shards cut through: `begin`, then `add` part after part.

    Values take the smallest type that holds those of all shards.
    """

    def __init__(self, manifest: Manifest, alignment: int) -> None:
        self._sizes = alignment, most_entries(manifest, alignment)
        self._value = _value_type(manifest)
        self._room: dict[str, np.ndarray] = {}
        self.begin()

    def begin(self) -> None:
        """Forget all rows."""
        self._rows = self._entries = self._first_row = 0

    def add(self, chunk: Chunk) -> None:
        """Copy rows that follow those before."""
        if self._rows == 0:
            self._first_row = chunk.first_row
        rows, entries = self._rows, self._entries
        self._rows, self._entries = rows + chunk.n_rows, entries + chunk.nnz
        there = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
        np.add(chunk.indptr, entries - there.start, out=self._array("indptr", np.int64, 0)[rows : self._rows + 1])
        self._array("indices", chunk.indices.dtype, 1)[entries : self._entries] = chunk.indices[there]
        if self._value is not None:
            self._array("data", self._value, 1)[entries : self._entries] = 1 if chunk.data is None else chunk.data[there]
        for name in ("y", "qid", "weight"):
            if (array := getattr(chunk, name)) is not None:
                self._array(name, array.dtype, 0)[rows : self._rows] = array

    def chunk(self) -> Chunk:
        """What was added, as views that are good until the next `begin`."""
        lengths = {"indptr": self._rows + 1, "indices": self._entries, "data": self._entries}
        views: dict[str, Any] = {name: array[: lengths.get(name, self._rows)] for name, array in self._room.items()}
        return Chunk(**{"data": None, **views}, first_row=self._first_row)

    def _array(self, name: str, dtype: np.dtype | type, kind: int) -> np.ndarray:
        """Array `name` for all rows (`kind` 0) or entries (1) that there can be; those never written take no memory."""
        if name not in self._room:
            self._room[name] = np.empty(self._sizes[kind] + 1, dtype)
        return self._room[name]


def joined_bytes(manifest: Manifest, alignment: int) -> int:
    """Memory of one JoinedRows."""
    entries = most_entries(manifest, alignment)
    value = _value_type(manifest)
    entry = (4 if manifest.statistics.n_features <= 2**31 - 1 else 8) + (0 if value is None else value.itemsize)
    return _ROW_BYTES * alignment + entry * entries if entries else 0


def _value_type(manifest: Manifest) -> np.dtype | None:
    """The smallest type that holds the values of all shards; None: they are all 1."""
    types = {shard.arrays["data"].dtype for shard in manifest.shards if not shard.ones}
    return np.result_type(*types) if types else None


def most_entries(manifest: Manifest, alignment: int) -> int:
    """Entries that the rows between two multiples of `alignment` can have when they lie in several shards; 0: none do."""
    first, longest, n = first_rows(manifest), manifest.statistics.max_row_nnz, manifest.statistics.n_rows
    most = 0
    for start in {row // alignment * alignment for row in first[1:-1] if row % alignment}:
        stop = min(start + alignment, n)
        found = 0
        for shard in range(int(np.searchsorted(first, start, side="right")) - 1, int(np.searchsorted(first, stop))):
            rows = min(stop, first[shard + 1]) - max(start, first[shard])
            found += min(manifest.shards[shard].nnz, longest * rows)
        most = max(most, found)
    return most
