"""Tables in memory (data frames and any other object that exports an Arrow stream), and folders of documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Sized
from functools import cached_property

import pyarrow as pa

from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.foundation.opened import opened_file, read_file
from streamcut.foundation.units import format_bytes
from streamcut.io.formats.registry import FRAME_NAME
from streamcut.io.recipe.table import Spelling
from streamcut.io.sources.lazy import Frame
from streamcut.io.tables.arrow import plain_batch
from streamcut.io.tables.files import SAMPLE_BYTES, SAMPLE_ROWS, BatchSize, TableFile, absent_names, checked_batch, unique_names
from streamcut.io.tables.roles import INDEX
from streamcut.io.text.inputs import files_below

_USUAL = Spelling()
KEYED = b"streamcut.keyed"  # in the schema of a table made of rows that name their values
FILE, LABEL, TEXT = "file", "label", "text"
_FIRST = 1 << 12  # bytes of a file that are inspected
_ROW = re.compile(rb"\s*[-+]?[\d.]+(e[-+]?\d+)?([\s,:|]|$)", re.IGNORECASE)  # a row of svmlight or of VW's text, or numbers


class FrameFile(TableFile):
    """Anything with `__arrow_c_stream__`: pandas, polars, DuckDB, pyarrow. A stream that can be read once is read once.

    An unnamed pandas index is not a column of the frame, although it is one of its stream.
    """

    def __init__(self, frame: Frame, spelling: Spelling = _USUAL) -> None:
        super().__init__(FRAME_NAME, spelling)
        self._frame: Frame | None = frame
        self._once = isinstance(frame, pa.RecordBatchReader)
        self._first: pa.RecordBatch | None = None  # of a single-use stream, until it is returned by `batches`
        self._schema: pa.Schema | None = None
        self.keyed = isinstance(frame, pa.Table) and KEYED in (frame.schema.metadata or {})
        if isinstance(frame, Sized):
            self.n_rows = len(frame)

    def expect(self, names: Sequence[str], *, all_names: bool = False) -> None:
        for name in absent_names(self.schema(), names) if self.keyed else ():
            assert isinstance(self._frame, pa.Table)
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
        stream, self._frame = self._reader(), None
        yield from stream

    def _reader(self) -> pa.RecordBatchReader:
        try:
            return self._frame if self._once else pa.RecordBatchReader.from_stream(self._frame)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:  # objects of several kinds in a column
            raise BadInputError(f"{self.name}: {'; '.join(map(str, error.args))}") from None


class DocumentFiles(TableFile):
    """The files below the folder `path`, sorted by name: columns file, text and, if they lie in subfolders, label.

    Texts that are not UTF-8 are read as Latin-1. The schema names the roles of the columns, so options need not.
    """

    def __init__(self, path: str, spelling: Spelling = _USUAL) -> None:
        super().__init__(path, spelling)
        self._files = files_below(path)
        self.n_rows = len(self._files)

    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def _schema(self) -> pa.Schema:
        names = [FILE, LABEL, TEXT] if all(os.path.dirname(name) for name in self._files) else [FILE, TEXT]
        return pa.schema([pa.field(name, pa.string()) for name in names], {f"streamcut.{name}": name for name in names})

    def sample(self) -> pa.RecordBatch:
        return next(self._batches(self._schema, BatchSize(SAMPLE_BYTES // 8, SAMPLE_ROWS // 8, SAMPLE_BYTES), cut=True))

    def _batches(self, schema: pa.Schema, size: BatchSize, *, cut: bool = False) -> Iterator[pa.RecordBatch]:
        """Batches of as many files as fit `size`, at least one; of longer files, the beginning if they may be `cut`."""
        rows: list[dict[str, str]] = []
        held, wanted = 0, pa.schema([self._schema.field(name) for name in schema.names], self._schema.metadata)
        for name in self._files:
            text = self._text(name, size, cut) if TEXT in schema.names else ""
            if rows and (held + len(text) > size.usual or len(rows) >= size.rows):
                yield pa.RecordBatch.from_pylist(rows, wanted)
                rows, held = [], 0
            rows.append({FILE: name, LABEL: os.path.basename(os.path.dirname(name)), TEXT: text})
            held += len(text)
        if rows:
            yield pa.RecordBatch.from_pylist(rows, wanted)

    def _text(self, name: str, size: BatchSize, cut: bool) -> str:
        path = os.path.join(self.name, name)
        try:
            if (long := os.path.getsize(path)) > size.most and not cut:
                raise BadInputError(
                    f"{path}: a document of {format_bytes(long)} is longer than the {format_bytes(size.most)} of one{size.advice}"
                )
            with opened_file(path) as file:
                content = file.read(size.most)
            content = content[: content.rfind(b" ")] if len(content) < long else content
        except OSError as error:
            raise NotFoundError(f"{path}: {error.strerror}") from None
        if b"\0" in content:
            raise BadInputError(f"{path}: holds zero bytes, so it is not text; remove it from the folder")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("latin-1")


def holds_documents(files: Sequence[str], folder: str) -> bool:
    """Whether the files of a folder look like documents: they lie in two folders or more, or all are `.txt`, and no inspected
    file begins like a row of numbers."""
    folders = {os.path.dirname(name) for name in files}
    inside = len(folders) > 1 and os.path.normpath(folder) not in map(os.path.normpath, folders)
    if not inside and not all(name.endswith(".txt") for name in files):
        return False
    for name in files[:: max(1, len(files) // 8)]:
        try:
            content = read_file(name)[:_FIRST].strip()
        except OSError:
            return False
        if b"\0" in content or _ROW.match(content):
            return False
    return True
