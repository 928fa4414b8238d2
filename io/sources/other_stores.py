"""Rows of a streamcut store, for conversion to another backend or other shards, a shuffle or a split."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from streamcut.io.dataset import first_rows
from streamcut.io.opening import open_dataset
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.stores.buffers import buffer_bytes


class StoreReader:
    """`held_bytes`: memory for the largest shard; one is held at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = open_dataset(path)
        self.recipe = self.data.recipe
        manifest = self.data.manifest
        self.n_rows, self.n_features = manifest.statistics.n_rows, manifest.statistics.n_features
        self.held_bytes = buffer_bytes(manifest)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        firsts = first_rows(self.data.manifest)
        buffers = self.data.buffers()
        for shard in range(bisect_right(firsts, start) - 1, len(firsts) - 1):
            chunk = self.data.read(shard, buffers)
            chunk = chunk.rows(max(0, start - firsts[shard]), chunk.n_rows)
            for first, stop in row_ranges(chunk.indptr, size, self.path, chunk.first_row):
                piece = chunk.rows(first, stop)
                entries = slice(piece.indptr[0], piece.indptr[-1])
                values = None if piece.data is None else piece.data[entries]
                yield RawRows(piece.indptr, piece.indices[entries], values, piece.y, piece.qid, piece.weight)
