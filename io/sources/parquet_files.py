"""Parquet files with a label column and, in each row, a list of feature numbers and a list of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import readable, regular
from streamcut.io.indices import expect_indices
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges

ROWS_AT_ONCE = 1 << 13


class ParquetReader:
    """`labels`, `indices`, `values`, `qid`, `weight`: column names; `values` None = all values are 1.

    `index_base` is subtracted from the feature numbers. `held_bytes`: the largest row group, decoded.
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
        with self._open() as file:
            columns = set(file.schema_arrow.names)
            for name in filter(None, self.names.values()):
                if name not in columns:
                    raise UsageError(f"{path}: no column {name!r}; it has {', '.join(sorted(columns))}")
            self.n_rows = file.metadata.num_rows
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            self.group_rows = [group.num_rows for group in groups]
            self.held_bytes = max((group.total_byte_size for group in groups), default=0)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        wanted = list(filter(None, self.names.values()))
        group, skip = 0, start
        while group < len(self.group_rows) and skip >= self.group_rows[group]:
            skip -= self.group_rows[group]
            group += 1
        with self._open() as file:
            row = start - skip
            for batch in file.iter_batches(ROWS_AT_ONCE, range(group, len(self.group_rows)), wanted, use_threads=False):
                rows = batch.num_rows
                if skip:
                    dropped = min(skip, rows)
                    batch, skip = batch.slice(dropped), skip - dropped
                if batch.num_rows:
                    yield from self._pieces(batch, row + rows - batch.num_rows, size)
                row += rows

    def _pieces(self, batch, row: int, size: BlockSize) -> Iterator[RawRows]:
        indptr, indices = self._lists(batch, "indices", row)
        values = None
        if self.names["values"] is not None:
            value_ptr, values = self._lists(batch, "values", row)
            if not np.array_equal(value_ptr, indptr):
                bad = int(np.flatnonzero(value_ptr != indptr)[0]) - 1
                raise BadInputError(f"{self.path}: row {row + bad} (0-based) has lists of different lengths")
        labels, qid, weight = (self._column(batch, name, row) for name in ("labels", "qid", "weight"))
        for first, stop in row_ranges(indptr, size, self.path, row):
            entries = slice(indptr[first], indptr[stop])
            yield RawRows(
                indptr[first : stop + 1],
                indices[entries],
                None if values is None else values[entries],
                labels[first:stop],
                None if qid is None else qid[first:stop],
                None if weight is None else weight[first:stop],
            )

    def _lists(self, batch, what: str, row: int) -> tuple[np.ndarray, np.ndarray]:
        import pyarrow as pa

        name = self.names[what]
        column = batch.column(name)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise UsageError(f"{self.path}: column {name!r} is {column.type}, not lists of numbers")
        if column.null_count:
            raise BadInputError(f"{self.path}: column {name!r} is empty in or after row {row} (0-based)")
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

    def _column(self, batch, what: str, row: int) -> Any:
        name = self.names[what]
        if name is None:
            return None
        column = batch.column(name)
        if column.null_count:
            raise BadInputError(f"{self.path}: column {name!r} is empty in or after row {row} (0-based)")
        return column.to_numpy(zero_copy_only=False)

    def _open(self):
        import pyarrow.parquet as pq

        try:
            place = regular(self.path)
        except OSError as error:
            raise NotFoundError(f"{self.path}: {error.strerror}") from None
        with readable(self.path, what="not a readable Parquet file"):
            return pq.ParquetFile(place, pre_buffer=False, buffer_size=1 << 20)
