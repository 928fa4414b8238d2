"""Tables in memory: data frames and any other object that exports an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.io.tables.arrow import plain_batch
from streamcut.io.tables.files import SAMPLE_ROWS, BatchSize, TableFile, absent_names, checked_batch, unique_names
from streamcut.io.tables.roles import INDEX

NAME = "the frame"
KEYED = b"streamcut.keyed"  # in the schema of a table made of rows that name their values


class FrameFile(TableFile):
    """Anything with `__arrow_c_stream__`: pandas, polars, DuckDB, pyarrow. A stream that can be read once is read once.

    An unnamed pandas index is not a column of the frame, although it is one of its stream.
    """

    def __init__(self, frame: Any) -> None:
        super().__init__(NAME)
        self._frame = frame
        self._once = isinstance(frame, pa.RecordBatchReader)
        self._first: pa.RecordBatch | None = None  # of a single-use stream, until it is returned by `batches`
        self._schema: pa.Schema | None = None
        self.keyed = isinstance(frame, pa.Table) and KEYED in (frame.schema.metadata or {})
        if hasattr(frame, "__len__"):
            self.n_rows = len(frame)

    def expect(self, names: Sequence[str], *, all_names: bool = False) -> None:
        for name in absent_names(self.schema(), names) if self.keyed else ():
            self._frame = self._frame.append_column(name, pa.nulls(len(self._frame)))
            self._first = self._schema = None

    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = unique_names(self.sample().schema, self.name)
        return self._schema

    def sample(self) -> pa.RecordBatch:
        if self._first is None:
            reader = self._reader()
            self._first = next(iter(reader), None) or pa.RecordBatch.from_pylist([], reader.schema)
        columns = [name for name in self._first.schema.names if not INDEX.fullmatch(name)]
        return plain_batch(self._first.slice(0, SAMPLE_ROWS).select(columns))

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        for batch in self._all():
            try:
                yield checked_batch(batch, schema)
            except pa.ArrowInvalid as error:
                raise BadInputError(f"{self.name}: {error}") from None

    def _all(self) -> Iterator[pa.RecordBatch]:
        if self._first is not None and self._first.num_rows == self.n_rows:  # pandas makes copies of its columns each time
            yield self._first
            return
        if not self._once:
            yield from self._reader()
            return
        if self._frame is None:
            raise UsageError(
                "an iterator of batches can be read only once, and bins, means and words need a second pass over the rows; "
                "give a table, or standardise=False, text_weights='counts'"
            )
        if self._first is not None and self._first.num_rows:
            yield self._first
        frame, self._frame = self._frame, None
        yield from frame

    def _reader(self) -> pa.RecordBatchReader:
        try:
            return self._frame if self._once else pa.RecordBatchReader.from_stream(self._frame)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:  # objects of several kinds in a column
            raise BadInputError(f"{self.name}: {'; '.join(map(str, error.args))}") from None
