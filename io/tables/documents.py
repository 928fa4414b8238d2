"""A folder of documents: each file is a row with its text, labelled by the name of its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.opened import read_file
from streamcut.foundation.units import format_bytes
from streamcut.io.tables.files import SAMPLE_BYTES, SAMPLE_ROWS, BatchSize, TableFile
from streamcut.io.text.inputs import files_below

FILE, LABEL, TEXT = "file", "label", "text"
_FIRST = 1 << 12  # bytes of a file that are inspected
_ROW = re.compile(rb"\s*[-+]?[\d.]+(e[-+]?\d+)?([\s,:|]|$)", re.IGNORECASE)  # a row of svmlight or of VW's text, or numbers


class DocumentFiles(TableFile):
    """The files below the folder `path`, sorted by name: columns file, text and, if they lie in subfolders, label.

    Texts that are not UTF-8 are read as Latin-1. The schema names the roles of the columns, so options need not.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._files = files_below(path)
        self.n_rows = len(self._files)

    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def _schema(self) -> pa.Schema:
        names = [FILE, LABEL, TEXT] if all(os.path.dirname(name) for name in self._files) else [FILE, TEXT]
        return pa.schema([pa.field(name, pa.string()) for name in names], {f"streamcut.{each}": each for each in names})

    def held_bytes(self, columns: Sequence[str] | None = None) -> int:
        return max(os.path.getsize(os.path.join(self.name, name)) for name in self._files)

    def sample(self) -> pa.RecordBatch:
        return next(self._batches(self._schema, BatchSize(SAMPLE_BYTES // 8, SAMPLE_ROWS // 8, SAMPLE_BYTES)))

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        """Batches of as many files as fit `size`, at least one."""
        rows: list[tuple[str, str]] = []
        held = 0
        for name in self._files:
            text = self._text(name, size) if TEXT in schema.names else ""
            if rows and (held + len(text) > size.usual or len(rows) >= size.rows):
                yield _batch(rows, schema)
                rows, held = [], 0
            rows.append((name, text))
            held += len(text)
        if rows:
            yield _batch(rows, schema)

    def _text(self, name: str, size: BatchSize) -> str:
        path = os.path.join(self.name, name)
        try:
            if os.path.getsize(path) > size.most:
                raise BadInputError(f"{path}: a document of {format_bytes(os.path.getsize(path))} is too long; raise --memory")
            content = read_file(path)
        except OSError as error:
            raise NotFoundError(f"{path}: {error.strerror}") from None
        if b"\0" in content:
            raise BadInputError(f"{path}: holds zero bytes, so it is not text; remove it from the folder")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("latin-1")


def _batch(rows: list[tuple[str, str]], schema: pa.Schema) -> pa.RecordBatch:
    columns = {
        FILE: [name for name, _ in rows],
        LABEL: [os.path.basename(os.path.dirname(name)) for name, _ in rows],
        TEXT: [text for _, text in rows],
    }
    kept = pa.schema([pa.field(name, pa.string()) for name in schema.names], schema.metadata)
    return pa.RecordBatch.from_pydict({name: columns[name] for name in schema.names}, kept)


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
