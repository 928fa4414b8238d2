"""Parquet files with a label column and, in each row, a list of feature numbers and a list of values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.fields import INT64_MAX
from streamcut.io.indices import expect_indices
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.tables.files import BatchSize, ParquetTable, require

_BATCH = BatchSize(4 << 20, 1 << 13, 4 << 20)


class ParquetReader:
    """`labels`, `indices`, `values`, `qid`, `weight`: column names; `values` None = all values are 1.

    `index_base` is subtracted from the feature numbers.
    """

    n_features = None

    def __init__(
        self,
        path: str,
        labels: str,
        indices: str,
        values: str | None,
        index_base: int,
        qid: str | None = None,
        weight: str | None = None,
    ) -> None:
        self.path, self.index_base = path, index_base
        self.names = {"labels": labels, "indices": indices, "values": values, "qid": qid, "weight": weight}
        self._wanted = [name for name in self.names.values() if name is not None]
        self._table = ParquetTable(path)
        require(path, self._table.schema(), self._wanted)
        self.n_rows, self.held_bytes = self._table.n_rows or 0, self._table.held_bytes(self._wanted)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        schema = pa.schema([self._table.schema().field(name) for name in self._wanted])
        for batch in self._table.batches(schema, start, _BATCH):
            yield from self._pieces(batch, start, size)
            start += batch.num_rows

    def _pieces(self, batch: pa.RecordBatch, row: int, size: BlockSize) -> Iterator[RawRows]:
        indptr, indices = self._lists(batch, "indices", row)
        values = None
        if self.names["values"] is not None:
            value_ptr, values = self._lists(batch, "values", row)
            if not np.array_equal(value_ptr, indptr):
                bad = int(np.flatnonzero(value_ptr != indptr)[0]) - 1
                raise BadInputError(f"{self.path}: row {row + bad} (0-based) has lists of different lengths")
        labels, qid, weight = (self._column(batch, name, row) for name in ("labels", "qid", "weight"))
        assert labels is not None
        for first, stop in row_ranges(indptr, size, self.path, row):
            entries, rows = slice(indptr[first], indptr[stop]), slice(first, stop)
            parts = (None if part is None else part[rows] for part in (qid, weight))
            yield RawRows(
                indptr[first : stop + 1], indices[entries], None if values is None else values[entries], labels[rows], *parts
            )

    def _lists(self, batch: pa.RecordBatch, what: str, row: int) -> tuple[np.ndarray, np.ndarray]:
        name = self.names[what]
        column = batch.column(name)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise UsageError(f"{self.path}: column {name!r} is {column.type}, not lists of numbers")
        self._expect_full(column, name, row)
        offsets = column.offsets.to_numpy().astype(np.int64)
        flat = column.flatten()
        if flat.null_count:
            raise BadInputError(f"{self.path}: column {name!r} has an empty entry in or after row {row} (0-based)")
        entries = flat.to_numpy(zero_copy_only=False)
        if what == "indices":
            if entries.dtype.kind not in "iu":
                raise UsageError(f"{self.path}: column {name!r} holds {entries.dtype}, not whole feature numbers")
            entries = expect_indices(entries, INT64_MAX, f"{self.path}: column {name!r}").astype(np.int64) - self.index_base
        return offsets - offsets[0], entries

    def _column(self, batch: pa.RecordBatch, what: str, row: int) -> np.ndarray | None:
        name = self.names[what]
        if name is None:
            return None
        self._expect_full(batch.column(name), name, row)
        return batch.column(name).to_numpy(zero_copy_only=False)

    def _expect_full(self, column: pa.Array, name: str | None, row: int) -> None:
        if column.null_count:
            raise BadInputError(f"{self.path}: column {name!r} is empty in or after row {row} (0-based)")
