"""All rows at once in memory, for solvers that go back and forth among them."""

from __future__ import annotations

from dataclasses import replace

from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.row_buffer import RowBuffer
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import entry_bytes
from streamcut.io.manifest import Manifest


def whole_bytes(manifest: Manifest) -> int:
    """Bytes of memory that `read_whole` takes; the values of all shards are of the type that holds those of each."""
    statistics = manifest.statistics
    return entry_bytes(manifest) * statistics.nnz + 24 * (statistics.n_rows + 1)


def read_whole(feed: Feed) -> tuple[Chunk, Traffic]:
    """Every row of the data, and what was read. Data that is one chunk of memory already is not copied."""
    manifest, traffic = feed.data.manifest, Traffic()
    statistics = manifest.statistics
    if feed.data.path is None and len(manifest.shards) == 1:
        return feed.data.read(0), traffic
    rows = RowBuffer(manifest, statistics.n_rows, statistics.nnz)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), traffic):
        rows.add(replace(block, qid=None))
    return rows.chunk(), traffic
