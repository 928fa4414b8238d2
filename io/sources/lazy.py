"""Rows of Dask arrays and data frames, part by part: the cluster computes one part ahead, and no process holds them all.

Dask is not imported: its collections are recognised by their protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.io.sources.row_source import one_ahead


def is_lazy(data: Any) -> bool:
    """Whether `data` is a Dask collection."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "compute")


def streamed(data: Any) -> Any:
    """`data`, with a Dask data frame wrapped to export itself as Arrow, partition by partition."""
    return PartitionedFrame(data) if is_lazy(data) and hasattr(data, "npartitions") and hasattr(data, "columns") else data


class PartitionedFrame:
    """A Dask data frame as a stream of Arrow; the first partition determines the column types."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        tables = computed([self._frame.partitions[k] for k in range(self._frame.npartitions)])
        first = pa.Table.from_pandas(next(tables), preserve_index=False)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from first.to_batches()
            for part in tables:
                yield from pa.Table.from_pandas(part, schema=first.schema, preserve_index=False).to_batches()

        return pa.RecordBatchReader.from_batches(first.schema, batches()).__arrow_c_stream__(requested_schema)


def blocks(X: Any, columns: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """(rows of X, the same of the columns that are not None) for each block of rows of a Dask array or numeric frame.

    Dask columns must have X's blocks, or known ones; others are sliced. Raises UsageError for columns of other lengths.
    """
    if hasattr(X, "numblocks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts = [X.blocks[k] for k in range(X.numblocks[0])]
    else:
        parts = [X.partitions[k] for k in range(X.npartitions)]
    columns = {name: column for name, column in columns.items() if column is not None}
    apart = {name: _parts(name, column, X, len(parts)) for name, column in columns.items() if is_lazy(column)}
    makers = {name: computed(found) for name, found in apart.items()}
    first = 0
    for rows in computed(parts):
        taken = slice(first, first + rows.shape[0])
        first = taken.stop
        yield rows, {name: next(makers[name]) if name in makers else column[taken] for name, column in columns.items()}
    for name, column in columns.items():
        if name not in apart and len(column) != first:
            raise UsageError(f"{name} has {len(column):,} values for {first:,} rows of X")


def computed(parts: list[Any]) -> Iterator[Any]:
    """The computed `parts`, in order, with the next one being computed."""
    return one_ahead(part.compute() for part in parts)


def _parts(name: str, column: Any, X: Any, count: int) -> list[Any]:
    """The parts of a column, cut like X."""
    if hasattr(column, "numblocks"):
        known = hasattr(X, "chunks") and not np.isnan([*X.chunks[0], *column.chunks[0]]).any()
        if known and column.chunks[0] != X.chunks[0]:
            column = column.rechunk({0: X.chunks[0]}) if column.shape[0] == X.shape[0] else column
        found = [column.blocks[k] for k in range(column.numblocks[0])]
    else:
        found = [column.partitions[k] for k in range(column.npartitions)]
    if len(found) != count:
        raise UsageError(f"{name}: it has {len(found)} parts and X has {count}; repartition it")
    return found
