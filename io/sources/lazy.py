"""Rows as Python has them, as one kind of frame: whatever exports itself as a stream of Arrow record batches.

Dicts, lazy queries of polars, data sets of pyarrow, Dask collections, and batches or frames that come one after another. None of
these libraries is imported: their objects are recognised by their protocols. Parts of Dask collections are computed while others
are read, and no process holds them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.io.sources.source import read_ahead

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeIs


class Frame(Protocol):
    """A table with an Arrow interface: of pandas, polars, DuckDB, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_frame(data: object) -> TypeIs[Frame]:
    """Whether `data` is a table with an Arrow interface."""
    return hasattr(data, "__arrow_c_stream__")


def is_of(data: object, *classes: str) -> bool:
    """Whether `data` is of one of `classes` ("dask.array.Array"); what is not imported has no objects."""
    for name in classes:
        module, _, member = name.rpartition(".")
        if module in sys.modules and isinstance(data, getattr(sys.modules[module], member)):
            return True
    return False


def is_lazy(data: object) -> bool:
    """Whether `data` is a Dask collection."""
    return "dask.base" in sys.modules and sys.modules["dask.base"].is_dask_collection(data)


def framed(data: Any) -> Any:
    """`data` as a frame (`__arrow_c_stream__`) where it holds rows by the names of columns; anything else unchanged.

    One row or several as {column: value}; a Dask data frame; a polars.LazyFrame; a pyarrow.dataset.Dataset; an iterator of record
    batches or frames, of which the first determines the types, read once. Raises BadInputError for rows that are no table,
    UsageError for an iterator of anything else.
    """
    if is_frame(data) or isinstance(data, str | tuple):
        return data
    if isinstance(data, Mapping):
        return _of_dicts([data])
    if isinstance(data, list) and data and all(issubclass(kind, Mapping) for kind in set(map(type, data))):
        return _of_dicts(data)
    if is_of(data, "dask.dataframe.DataFrame"):
        return Stream(lambda: computed([data.partitions[k] for k in range(data.npartitions)]))
    if is_of(data, "polars.LazyFrame"):
        return Stream(data.collect_batches)
    if is_of(data, "pyarrow.dataset.Dataset"):
        return Stream(lambda: [data.scanner().to_reader()])
    if not isinstance(data, Iterator):
        return data
    first = next(data, None)
    if isinstance(first, str | os.PathLike):
        return [first, *data]
    return _reader(data if first is None else chain([first], data))


class Stream:
    """Frames, made anew whenever they are read, as one stream of Arrow."""

    def __init__(self, frames: Callable[[], Iterable[object]]) -> None:
        self._frames = frames

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return _reader(iter(self._frames())).__arrow_c_stream__(requested_schema)


def _reader(frames: Iterator[object]) -> pa.RecordBatchReader:
    """A stream of `frames`, with the columns and types of the first."""
    import pyarrow as pa

    first = next(frames, None)
    if first is None:
        raise BadInputError("data: no rows; the iterator is empty")
    if not is_frame(first):
        raise UsageError(f"data: an iterator of {type(first).__name__}; rows come as an iterator of record batches or frames")
    if isinstance(first, pa.RecordBatchReader):
        return first

    def table(frame: object, schema: pa.Schema | None = None) -> pa.Table:
        try:
            if is_of(frame, "pandas.DataFrame"):  # whose index is no column
                return pa.Table.from_pandas(frame, schema, preserve_index=False)
            return pa.table(frame) if schema is None else pa.table(frame).select(schema.names).cast(schema)
        except (KeyError, pa.ArrowException) as error:
            raise BadInputError(f"data: {error.args[0]}") from None

    schema = (head := table(first)).schema
    batches = chain.from_iterable(part.to_batches() for part in chain([head], (table(frame, schema) for frame in frames)))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _of_dicts(rows: list[Mapping[object, object]]) -> pa.Table:
    """A table of rows that name their values; a name that a row lacks is missing there."""
    import pyarrow as pa

    columns, names = {}, dict[object, object]()
    for row in rows:
        names.update(row)
    for name in names:
        try:
            columns[str(name)] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            raise BadInputError(f"the rows: column {name!r}: {error}") from None
    return pa.table(columns, metadata={"streamcut.keyed": ""})


def blocks(X: Any, columns: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """(rows of X, the same of the columns that are not None) for each block of rows of a Dask array or numeric frame.

    Dask columns must have X's blocks, or known ones; others are sliced. Raises UsageError for columns of other lengths.
    """
    if is_of(X, "dask.array.Array"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts = [X.blocks[k] for k in range(X.numblocks[0])]
    else:
        parts = [X.partitions[k] for k in range(X.npartitions)]
    columns = {name: column for name, column in columns.items() if column is not None}
    apart = {name: _parts(name, column, X, len(parts)) for name, column in columns.items() if is_lazy(column)}
    makers = {name: computed(pieces) for name, pieces in apart.items()}
    first = 0
    for rows in computed(parts):
        taken = slice(first, first + rows.shape[0])
        first = taken.stop
        yield rows, {name: next(makers[name]) if name in makers else column[taken] for name, column in columns.items()}
    for name, column in columns.items():
        if name not in apart and len(column) != first:
            raise UsageError(f"{name} has {len(column):,} values for {first:,} rows of X")


def computed(parts: list[Any]) -> Iterator[Any]:
    """The computed `parts`, in order: while one is in use, the next one waits and the one after that is being computed."""
    return read_ahead(part.compute() for part in parts)


def _parts(name: str, column: Any, X: Any, count: int) -> list[Any]:
    """The parts of a column, cut like X."""
    if is_of(column, "dask.array.Array"):
        sized = is_of(X, "dask.array.Array") and not np.isnan([*X.chunks[0], *column.chunks[0]]).any()
        if sized and column.chunks[0] != X.chunks[0]:
            column = column.rechunk({0: X.chunks[0]}) if column.shape[0] == X.shape[0] else column
        parts = [column.blocks[k] for k in range(column.numblocks[0])]
    else:
        parts = [column.partitions[k] for k in range(column.npartitions)]
    if len(parts) != count:
        raise UsageError(f"{name}: it has {len(parts)} parts and X has {count}; repartition it")
    return parts
