"""Tables as JSON lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson

from streamcut.errors import BadInputError
from streamcut.io.tables.files import BatchSize, absent_names, given_role
from streamcut.io.tables.text_files import GUESS_BYTES, TextFile, one_line, only_batch
from streamcut.io.text.blocks import BOM
from streamcut.io.text.inputs import NOT_UTF8


class JsonFile(TextFile):
    """JSON lines: an object on each line, which may lack any key."""

    keyed = True
    _all_names = False

    def expect(self, names: Sequence[str], *, all_names: bool = False) -> None:
        first = self.sample()
        for name in absent_names(first.schema, names):
            first = first.append_column(name, pa.nulls(len(first)))
        self._first, self._all_names = first, self._all_names or all_names

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        if head.removeprefix(BOM).lstrip().startswith(b"["):
            raise BadInputError(f"{self.name}: a JSON array; JSON lines have an object on each line")
        self._expect_utf8(head if len(head) < GUESS_BYTES else head[: head.rfind(b"\n") + 1], 0)
        return self._parsed(head, None)

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        """In blocks of whole lines: Arrow's own reader counts the rows of a block, and takes any bytes for UTF-8."""
        first, rest = 0, b""
        with self._bytes() as stream:
            self._stream = stream
            reader, wanted = io.BufferedReader(stream), size.usual
            while more := reader.read(wanted):
                block = rest + more
                stop = block.rfind(b"\n") + 1 if len(more) == wanted else len(block)
                if not stop and len(block) >= size.most:
                    raise BadInputError(f"{self.name}: row {first} (0-based) does not end within the available memory")
                wanted, rest = (size.usual if stop else len(block)), block[stop:]
                if block[:stop].strip():
                    batch = self._rows(block[:stop], schema, first)
                    first += batch.num_rows
                    yield batch
            if rest.strip():
                yield self._rows(rest, schema, first)

    def _rows(self, block: bytes, schema: pa.Schema, first: int) -> pa.RecordBatch:
        """The rows of whole lines, the first of which is number `first`."""
        self._expect_utf8(block, first)
        found = None
        if self._all_names:
            with suppress(pa.ArrowException):  # of keys that are not read, whose types may change
                found = self._parsed(block, schema, "infer")
            if found is None or not set(self.schema().names).issuperset(found.schema.names):
                self._expect_names(block, first)
        try:
            return (self._parsed(block, schema) if found is None else found).select(schema.names)
        except pa.ArrowException as error:
            raise BadInputError(f"{self.name}: {self._error(str(error), first)}") from None

    def _expect_names(self, block: bytes, first: int) -> None:
        """Raise for a key that is no column: it is absent from the rows that types are guessed from."""
        names = set(self.schema().names)
        for row, line in enumerate((line for line in block.split(b"\n") if line.strip()), start=first):
            new = None
            with suppress(ValueError, AttributeError, RecursionError):  # Arrow says what is wrong with such a line
                new = next((name for name, _ in json.loads(line).items() if name not in names), None)
            if new is not None:
                raise BadInputError(
                    f"{self.name}: row {row} (0-based) is the first with the key {new!r}, too late to guess its type; "
                    + given_role(new)
                )

    def _expect_utf8(self, block: bytes, first: int) -> None:
        """Raise for bytes that are not UTF-8: Arrow accepts any bytes in JSON."""
        if block.isascii():
            return
        ends = pa.py_buffer(np.array([0, len(block)], np.int64))
        try:
            pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(block)]).validate(full=True)
        except pa.ArrowInvalid:
            lines = block.decode("utf-8", "surrogateescape").split("\n")
            wrong = next(i for i, line in enumerate(lines) if any("\udc80" <= letter <= "\udcff" for letter in line))
            row = first + sum(line.strip() != "" for line in lines[:wrong])
            raise BadInputError(f"{self.name}: row {row} (0-based): {NOT_UTF8}") from None

    def _parsed(self, block: bytes, schema: pa.Schema | None, others: str = "ignore") -> pa.RecordBatch:
        table = pjson.read_json(
            pa.BufferReader(block),
            read_options=pjson.ReadOptions(block_size=len(block) + 1, use_threads=False),
            parse_options=pjson.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="infer" if schema is None else others,
            ),
        )
        return only_batch(table)

    def _error(self, said: str, first: int) -> str:
        """Arrow's message on a block that begins with row `first`; Arrow counts from 0."""
        row = re.search(r"^(.*) in row (\d+)$", said, re.DOTALL)
        said = said.removeprefix("JSON parse error: ")
        if row is None:
            return f"a row from {first} (0-based) on: {one_line(said)}"
        what = re.sub(r"Column\(/([^)]*)\)", r"column '\1'", row[1].removeprefix("JSON parse error: "))
        return f"row {first + int(row[2])} (0-based): {one_line(what)}"
