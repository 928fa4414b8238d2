"""Tables as text: CSV, TSV and JSON lines, compressed or not, from files, URLs and standard input.

Text is cut at line ends into blocks, and any thread may parse a block: only the bytes are read in order.
"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pjson

from streamcut.errors import BadInputError
from streamcut.io.tables import csv_kernels
from streamcut.io.tables.files import SAMPLE_ROWS, BatchSize, Part, opened, there, unique_names
from streamcut.io.text.blocks import BOM
from streamcut.io.text.decompress import open_bytes
from streamcut.io.text.inputs import STDIN, Input

GUESS_BYTES = 1 << 20  # types are guessed from this much of a text, regardless of the block size
_QUOTED = re.compile(rb'"[^"]*"')
_GUESS_LINES, _GUESS_MOST = 9, 1 << 26  # or from more, where this many lines are longer


class _TextFile(ABC):
    """The part common to both formats: bytes that are read front to back."""

    n_rows = None
    guesses = True
    spelled = False
    nothing = b" \t\r\n"  # bytes allowed in a block without rows

    def __init__(self, path: str) -> None:
        self.name = path
        self._stream: _Counted | None = None
        self._first: pa.RecordBatch | None = None
        self._kept: BinaryIO | None = None  # standard input whose beginning has been read

    @property
    def position(self) -> int | None:
        return None if self._stream is None else self._stream.taken

    @property
    def again(self) -> bool:
        return self.name != STDIN

    def held_bytes(self, columns: Sequence[str] | None = None) -> int:
        return 0

    def schema(self) -> pa.Schema:
        return self.sample().schema

    def sample(self) -> pa.RecordBatch:
        if self._first is None:
            head = self._beginning()
            try:
                self._first = self._guessed(head)
            except pa.ArrowException as error:
                said = _csv_error(str(error), -1) if self.spelled else _json_error(str(error), 0)
                raise BadInputError(f"{self.name}: {said}") from None
            unique_names(self._first.schema, self.name)
        return self._first

    def written(self, names: Sequence[str]) -> pa.RecordBatch:
        return self.sample().select(names)

    def batches(self, schema: pa.Schema, start: int, size: BatchSize) -> Iterator[pa.RecordBatch]:
        for part in self.parts(schema, start, size):
            batch = part(start)
            start += batch.num_rows
            yield batch

    def parts(self, schema: pa.Schema, start: int, size: BatchSize) -> Iterator[Part]:
        self.sample()  # finds the delimiter
        seen, quotes, names = 0, 0, None
        with self._bytes() as stream:
            self._stream = stream
            for block, whole in self._blocks(stream, size):
                if not whole:
                    yield self._too_long
                    return
                if not block.strip(self.nothing):
                    continue
                quotes += int(csv_kernels.quotes(np.frombuffer(block, np.uint8))) if self.spelled else 0
                part: Part = partial(self._rows, block, names, schema)
                names = self.schema().names
                if seen < start:  # rows before `start`
                    batch = part(seen)
                    seen += batch.num_rows
                    if seen <= start:
                        continue
                    part = partial(there, batch.slice(start - seen + batch.num_rows))
                yield part
            if self.spelled and quotes % 2:
                yield self._never_closed

    def _blocks(self, stream: _Counted, wanted: BatchSize) -> Iterator[tuple[bytes, bool]]:
        """(whole lines, True): as many as fit, or a single longer one; (part of an overlong line, False)."""
        reader, rest, size = io.BufferedReader(stream), b"", wanted.usual
        while more := reader.read(size - len(rest)):
            block = rest + more
            stop = 0
            for end in self._ends(block, wanted.rows):
                yield block[stop:end], True
                stop = end
            if stop:
                rest = block[stop:]
                size = wanted.usual + len(rest)
            elif len(block) >= wanted.most:
                yield block, False
                return
            else:  # again, with memory for a longer row
                rest, size = block, min(4 * len(block), wanted.most)
        if rest:
            yield rest, True

    def _ends(self, block: bytes, rows: int) -> Iterator[int]:
        """Where to cut `block`: after whole lines, about `rows` of them, since short lines need more memory per byte."""
        lines = block.count(b"\n")
        step, start, last = len(block) * rows // max(lines, 1), 0, self._line_end(block)
        while lines > rows and start + step < last:
            end = self._line_end(block[start : start + step])
            if end == 0:
                break
            start += end
            yield start
        if last > start:
            yield last

    @abstractmethod
    def _line_end(self, block: bytes) -> int:
        """The position after the last line end in `block`; 0: none."""

    @abstractmethod
    def _rows(self, block: bytes, names: Sequence[str] | None, schema: pa.Schema, first: int) -> pa.RecordBatch:
        """The rows of whole lines, beginning with row `first`; `names` of all columns, None: from the first line."""

    def _too_long(self, first: int) -> pa.RecordBatch:
        raise BadInputError(
            f"{self.name}: row {first} (0-based) does not end within the available memory: is a quote never closed?"
        )

    def _never_closed(self, first: int) -> pa.RecordBatch:
        raise BadInputError(f"{self.name}: an odd number of quotes: one is never closed, or occurs undoubled in a value")

    @abstractmethod
    def _guessed(self, head: bytes) -> pa.RecordBatch:
        """The rows of the beginning of a text, with guessed types."""

    def _beginning(self) -> bytes:
        with self._bytes() as stream:
            head, wanted = b"", GUESS_BYTES
            while len(head) < wanted and (more := stream.read(wanted - len(head))):
                head += more
                if len(head) == wanted < _GUESS_MOST and head.count(b"\n") < _GUESS_LINES:
                    wanted *= 2
        if self.name == STDIN:
            self._kept = cast(BinaryIO, _Joined(head, stream.raw_stream))
        if not head.strip():
            raise BadInputError(f"{self.name}: empty")
        if len(head) == wanted and (cut := head.rfind(b"\n") + 1):
            head = head[:cut]
        return head

    def _bytes(self) -> _Counted:
        """The decompressed bytes from the beginning on."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return _Counted(kept, closes=False)
        raw = Input(STDIN).open() if self.name == STDIN else opened(self.name)
        stream, _ = open_bytes(raw, self.name)
        return _Counted(stream, closes=self.name != STDIN)


class CsvFile(_TextFile):
    """Values between delimiters with a line of names; quoted values may contain line ends.

    delimiter  None: that of `,` `;` tab `|` which is most frequent in the line of names, `,` where none is
    """

    spelled = True
    nothing = b"\r\n"  # blanks and tabs are values

    def __init__(self, path: str, delimiter: str | None = None) -> None:
        super().__init__(path)
        self._given = delimiter
        self._delimiter, self._decimal = delimiter or ",", "."
        self._head = b""  # the bytes that types were guessed from

    @property
    def told(self) -> list[str]:
        """What was guessed about the text, if it is unusual."""
        mark = "tabs" if self._delimiter == "\t" else repr(self._delimiter)
        found = [f"columns are separated by {mark}"] if self._delimiter != (self._given or ",") else []
        return [*found, *(["decimals are written with a comma"] if self._decimal == "," else [])]

    def written(self, names: Sequence[str]) -> pa.RecordBatch:
        self.sample()
        texts = {name: pa.string() for name in names}
        return self._parsed(self._head, column_types=texts, include_columns=list(names)).slice(0, SAMPLE_ROWS)

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        self._delimiter, self._decimal = _marks(head, self._given)
        first, self._head = self._parsed(head), head
        for field in first.schema:
            if pa.types.is_binary(field.type):
                row = next(row for row, value in enumerate(first.column(field.name)) if not _is_utf8(value.as_py()))
                raise BadInputError(
                    f"{self.name}: row {row} (0-based), column {field.name!r}: not UTF-8; convert the file, with iconv"
                )
        return first

    def _line_end(self, block: bytes) -> int:
        if b'"' in block:
            return int(csv_kernels.last_line_end(np.frombuffer(block, np.uint8), ord(self._delimiter)))
        return (block.rfind(b"\n") + 1) or (block.rfind(b"\r") + 1)

    def _rows(self, block: bytes, names: Sequence[str] | None, schema: pa.Schema, first: int) -> pa.RecordBatch:
        if names is not None and block.startswith(BOM):
            block = BOM + block  # Arrow strips the first one as the byte order mark of a file
        try:
            return self._parsed(block, names, column_types=schema, include_columns=schema.names)
        except pa.ArrowException as error:
            raise BadInputError(f"{self.name}: {_csv_error(str(error), first - (names is None), self.schema().names)}") from None

    def _parsed(self, block: bytes, names: Sequence[str] | None = None, **wanted: Any) -> pa.RecordBatch:
        table = pcsv.read_csv(
            pa.BufferReader(block),
            read_options=pcsv.ReadOptions(block_size=len(block) + 1, use_threads=False, column_names=names),
            parse_options=pcsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                **wanted, check_utf8=not block.isascii(), auto_dict_encode=False, decimal_point=self._decimal
            ),
        )
        return _only(table)


def _marks(head: bytes, delimiter: str | None) -> tuple[str, str]:
    """(delimiter, decimal point) of a text that begins with `head`.

    A comma is a decimal point where it is no delimiter, some value of the beginning is a number with one, and none with a point.
    """
    names, _, rest = head.replace(b"\r", b"\n").partition(b"\n")
    if delimiter is None:
        outside = _QUOTED.sub(b"", names)
        delimiter = max(",;\t|", key=lambda mark: outside.count(mark.encode()))
    if delimiter == ",":
        return delimiter, "."
    values = re.split(rb"[\n" + re.escape(delimiter.encode()) + rb"]", rest[:GUESS_BYTES])
    commas, points = (any(map(re.compile(rb'"?[-+]?\d+' + mark + rb'\d+"?').fullmatch, values)) for mark in (b",", rb"\."))
    return delimiter, "," if commas and not points else "."


class JsonFile(_TextFile):
    """JSON lines: an object on each line."""

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        if head.removeprefix(BOM).lstrip().startswith(b"["):
            raise BadInputError(f"{self.name}: a JSON array; JSON lines have an object on each line")
        self._expect_utf8(head if len(head) < GUESS_BYTES else head[: head.rfind(b"\n") + 1], 0)
        return self._parsed(head, None)

    def _line_end(self, block: bytes) -> int:
        return block.rfind(b"\n") + 1

    def _rows(self, block: bytes, names: Sequence[str] | None, schema: pa.Schema, first: int) -> pa.RecordBatch:
        self._expect_utf8(block, first)
        try:
            return self._parsed(block, schema).select(schema.names)
        except pa.ArrowException as error:
            raise BadInputError(f"{self.name}: {_json_error(str(error), first)}") from None

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
            raise BadInputError(f"{self.name}: row {row} (0-based): not UTF-8; convert the file, with iconv") from None

    def _parsed(self, block: bytes, schema: pa.Schema | None) -> pa.RecordBatch:
        table = pjson.read_json(
            pa.BufferReader(block),
            read_options=pjson.ReadOptions(block_size=len(block) + 1, use_threads=False),
            parse_options=pjson.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="infer" if schema is None else "ignore",
            ),
        )
        return _only(table)


def _only(table: pa.Table) -> pa.RecordBatch:
    """The only batch of a table, or one without rows."""
    for batch in table.combine_chunks().to_batches():
        return batch
    return pa.RecordBatch.from_pylist([], table.schema)


def _csv_error(said: str, first: int, names: Sequence[str] = ()) -> str:
    """Arrow's message on a block whose first line, its row 1, is row `first` (0-based), with the columns `names`."""
    row = re.search(r"Row #(\d+): (.*)", said, re.DOTALL)
    if row is None:
        return _one_line(said)
    what = re.sub(r"^CSV conversion error to (\w+): ", r"not \1: ", row[2])
    column = re.search(r"In CSV column #(\d+)", said)
    number = int(column[1]) if column else 0
    where = "" if column is None else f", column {names[number]!r}" if names else f", column number {number} (0-based)"
    return f"row {first + int(row[1]) - 1} (0-based){where}: {_one_line(what)}"


def _json_error(said: str, first: int) -> str:
    """Arrow's message on a block that begins with row `first`; Arrow counts from 0."""
    row = re.search(r"^(.*) in row (\d+)$", said, re.DOTALL)
    said = said.removeprefix("JSON parse error: ")
    if row is None:
        return f"a row from {first} (0-based) on: {_one_line(said)}"
    what = re.sub(r"Column\(/([^)]*)\)", r"column '\1'", row[1].removeprefix("JSON parse error: "))
    return f"row {first + int(row[2])} (0-based): {_one_line(what)}"


def _one_line(said: str) -> str:
    """Arrow's message on one line: it quotes values with their line ends."""
    return " ".join(said.split())


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: Any, *, closes: bool) -> None:
        self.raw_stream, self._closes = stream, closes
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        got = self.raw_stream.readinto(target)
        if got:
            self.taken += got
        return got

    def close(self) -> None:
        if self._closes:
            self.raw_stream.close()
        super().close()


class _Joined(io.RawIOBase):
    """`head`, then the rest of `stream`."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head, self._stream = memoryview(head), stream

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        if not self._head:
            return self._stream.readinto(target)
        count = min(len(target), len(self._head))
        target[:count] = self._head[:count]
        self._head = self._head[count:]
        return count
