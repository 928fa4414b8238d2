"""Copies of rows, joined in memory that one thread reuses.

New arrays each time would cost page faults, and the allocator keeps much of the freed memory: 40 MB more at the peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import entry_dtypes
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
