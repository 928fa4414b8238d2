"""A store whose shards are read in parts: the same rows, in less memory. Subclasses read ranges of stored arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from streamcut.io.manifest import ShardInfo
from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.guarded import damaged
from streamcut.io.stores.stored import StoredDataset

PART = 1 << 19  # most entries of a part, unless a single row has more
ENTRIES = ("indices", "data")  # arrays with an element for each entry, not for each row


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the store's shard number `shard` that begins at row `row` and entry `entry`."""

    shard: int
    row: int
    entry: int

    def first(self, name: str) -> int:
        """Its first element in array `name`."""
        return self.entry if name in ENTRIES else self.row


class Parts(StoredDataset, ABC):
    """The rows of `store` in parts of its shards with at most `entries` entries, each a shard of the manifest.

    Reads every `indptr` to find them. The fingerprint stays the same: so does the data.
    """

    def __init__(self, store: StoredDataset, entries: int = PART) -> None:
        self._store, self._parts = store, list[Part]()
        shards = [info for shard in range(len(store.manifest.shards)) for info in self._cut(shard, entries)]
        super().__init__(str(store.path), replace(store.manifest, shards=tuple(shards)))

    def _cut(self, shard: int, entries: int) -> Iterator[ShardInfo]:
        """The parts of a shard of the store, as shards."""
        info, indptr, start = self._store.manifest.shards[shard], self.indptr(shard), 0
        while start < info.rows:
            stop = int(np.searchsorted(indptr, indptr[start] + entries, side="right")) - 1
            stop = min(max(stop, start + 1), info.rows)
            if not 0 <= indptr[start] <= indptr[stop] <= info.nnz:
                raise damaged(self._store.where(shard, "indptr"), "does not rise from 0 to the number of entries")
            self._parts.append(Part(shard, start, int(indptr[start])))
            yield self._part_of(info, stop - start, int(indptr[stop] - indptr[start]))
            start = stop

    def _part_of(self, info: ShardInfo, rows: int, entries: int) -> ShardInfo:
        """A part of a shard. The size of its one file is the memory that reading takes."""
        sizes = {name: entries if name in ENTRIES else rows + (name == "indptr") for name in info.arrays}
        arrays = {name: replace(array, size=sizes[name], stored_bytes=0) for name, array in info.arrays.items()}
        return replace(info, rows=rows, nnz=entries, arrays=arrays, files={"blocks": (self.room(info, sizes), 0)})

    def where(self, shard: int, name: str = "") -> str:
        return self._store.where(self._parts[shard].shard, name)

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        part = self._parts[shard]
        for name, array in out.items():
            if len(array):
                self.read_range(part.shard, name, part.first(name), array, buffers)
        if "indptr" in out:
            out["indptr"] -= out["indptr"][0]

    @abstractmethod
    def indptr(self, shard: int) -> np.ndarray:
        """The indptr of a shard of the store."""

    @abstractmethod
    def room(self, info: ShardInfo, sizes: dict[str, int]) -> int:
        """Bytes, in addition to the arrays, for reading a part of this shard whose arrays have these `sizes`."""

    @abstractmethod
    def read_range(self, shard: int, name: str, first: int, out: np.ndarray, buffers: Buffers) -> None:
        """Fill `out` with elements `first` on of array `name` of a shard of the store. Raises CorruptError."""
