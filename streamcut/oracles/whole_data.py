"""All rows at once in memory, for solvers that go back and forth among them."""

from __future__ import annotations

import numpy as np

from streamcut.chunk import Chunk
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.row_cache import entry_dtypes
from streamcut.io.manifest import Manifest


def whole_bytes(manifest: Manifest) -> int:
    """Bytes of memory that `read_whole` takes; the values of all shards are of the type that holds those of each."""
    index, value = entry_dtypes(manifest)
    statistics = manifest.statistics
    entry = np.dtype(index).itemsize + (np.dtype(value).itemsize if value else 0)
    return entry * statistics.nnz + 24 * (statistics.n_rows + 1)


def read_whole(feed: Feed) -> tuple[Chunk, Traffic]:
    """Every row of the data, and what was read. Data that is one chunk of memory already is not copied."""
    manifest, traffic = feed.data.manifest, Traffic()
    statistics = manifest.statistics
    if feed.data.path is None and len(manifest.shards) == 1:
        return feed.data.read(0), traffic
    index, value = entry_dtypes(manifest)
    indptr = np.zeros(statistics.n_rows + 1, np.int64)
    indices = np.empty(statistics.nnz, index)
    data = None if value is None else np.empty(statistics.nnz, value)
    y = np.empty(statistics.n_rows)
    weight = None if statistics.weight_sum is None else np.empty(statistics.n_rows)
    buffers, row, entry = feed.buffers(), 0, 0
    for block in feed.blocks(0, statistics.n_rows, buffers, traffic):
        rows, entries = slice(row, row + block.n_rows), slice(entry, entry + block.nnz)
        inside = slice(block.indptr[0], block.indptr[-1])
        indptr[rows.start + 1 : rows.stop + 1] = block.indptr[1:] - block.indptr[0] + entry
        indices[entries] = block.indices[inside]
        if data is not None:
            data[entries] = 1 if block.data is None else block.data[inside]
        y[rows] = block.y
        if weight is not None:
            weight[rows] = block.weight
        row, entry = rows.stop, entries.stop
    return Chunk(indptr, indices, data, y, None, weight), traffic
