"""All rows at once in memory, for solvers that go back and forth among them."""

from __future__ import annotations

import math

import numpy as np

from streamcut.chunk import Chunk
from streamcut.execution.feed import Feed, Traffic
from streamcut.io.manifest import Manifest
from streamcut.passes import kernel_columns


def whole_bytes(manifest: Manifest) -> int:
    """Bytes of memory that `read_whole` takes; the values of all shards are of the type that holds those of each."""
    index, value = _dtypes(manifest)
    statistics = manifest.statistics
    entry = np.dtype(index).itemsize + (np.dtype(value).itemsize if value else 0)
    return entry * statistics.nnz + 24 * (statistics.n_rows + 1)


def read_whole(feed: Feed) -> tuple[Chunk, Traffic]:
    """Every row of the data, and what was read. Data that is one chunk of memory already is not copied."""
    manifest, traffic = feed.data.manifest, Traffic()
    statistics = manifest.statistics
    if feed.data.path is None and len(manifest.shards) == 1:
        return feed.data.read(0), traffic
    index, value = _dtypes(manifest)
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


def variance(feed: Feed) -> float:
    """Of all n × d values, zeros included, to the last bit the same however the rows are cut into shards."""
    statistics, traffic = feed.data.manifest.statistics, Traffic()
    sums, squares = np.empty(statistics.n_rows), np.empty(statistics.n_rows)
    ones = np.ones(statistics.n_features)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), traffic):
        rows = slice(block.first_row, block.first_row + block.n_rows)
        kernel_columns.squared_norms(block.indptr, block.indices, block.data, squares[rows])
        linear = (0, 1.0, 1, 0.0)
        kernel_columns.column(
            None, block.indptr, block.indices, block.data, squares[rows], ones, 0.0, *linear, sums[rows]
        )  # fmt: skip
    count = statistics.n_rows * statistics.n_features
    mean = math.fsum(sums) / count
    return max(math.fsum(squares) / count - mean * mean, 0.0)


def _dtypes(manifest: Manifest) -> tuple[str, str | None]:
    """The smallest types that hold all feature numbers, and all values (None: they are all 1)."""
    values = {shard.arrays["data"].dtype for shard in manifest.shards if not shard.ones}
    index = "int32" if manifest.statistics.n_features <= 2**31 - 1 else "int64"
    return index, np.result_type(*values).name if values else None
