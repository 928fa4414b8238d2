"""Tables as text: CSV, TSV and JSON lines, compressed or not, from files, URLs and standard input."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pjson

from streamcut.errors import BadInputError
from streamcut.io.tables.files import opened, unique_names
from streamcut.io.text.decompress import open_bytes
from streamcut.io.text.inputs import STDIN, Input

GUESS_BYTES = 1 << 20  # types are guessed from the beginning of a text, whatever blocks it is read in


class _TextFile:
    """What both have in common: bytes that are read front to back."""

    n_rows = None
    held_bytes = 0
    guesses = True
    spelled = False

    def __init__(self, path: str) -> None:
        self.name = path
        self._stream: _Counted | None = None
        self._first: pa.RecordBatch | None = None
        self._kept: BinaryIO | None = None  # standard input, whose beginning was looked at

    @property
    def position(self) -> int | None:
        return None if self._stream is None else self._stream.taken

    def schema(self) -> pa.Schema:
        return self.sample().schema

    def sample(self) -> pa.RecordBatch:
        if self._first is None:
            head = self._beginning()
            try:
                self._first = self._guessed(head)
            except pa.ArrowException as error:
                raise BadInputError(f"{self.name}: {self._explained(str(error), 0)}") from None
            unique_names(self._first.schema, self.name)
        return self._first

    def batches(self, schema: pa.Schema, start: int, block_bytes: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
        while True:
            seen = 0
            with self._bytes() as stream:
                self._stream = stream
                try:
                    for batch in self._read(stream, schema, block_bytes):
                        seen += batch.num_rows
                        if seen > start:
                            yield batch.slice(max(0, start - (seen - batch.num_rows)))
                except pa.ArrowException as error:
                    longer = "straddl" in str(error) and self.name != STDIN
                    if not longer or block_bytes >= most_bytes:
                        raise BadInputError(f"{self.name}: {self._explained(str(error), seen)}") from None
                else:
                    self._end(stream)
                    return
            start, block_bytes = max(start, seen), min(4 * block_bytes, most_bytes)  # once more, with room for longer rows

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        raise NotImplementedError

    def _read(self, stream: Any, schema: pa.Schema, block_bytes: int) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _explained(self, said: str, seen: int) -> str:
        raise NotImplementedError

    def _end(self, stream: _Counted) -> None:
        """All is read: raise BadInputError when it cannot have been right."""

    def _beginning(self) -> bytes:
        with self._bytes() as stream:
            head = b""
            while len(head) < GUESS_BYTES and (more := stream.read(GUESS_BYTES - len(head))):
                head += more
        if self.name == STDIN:
            self._kept = cast(BinaryIO, _Joined(head, stream.raw_stream))
        if not head.strip():
            raise BadInputError(f"{self.name}: empty")
        if len(head) == GUESS_BYTES and (cut := head.rfind(b"\n") + 1):
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
    """Comma- or tab-separated values with a line of names; a value in quotes may hold line ends."""

    spelled = True

    def __init__(self, path: str, delimiter: str) -> None:
        super().__init__(path)
        self._parse = {"delimiter": delimiter, "newlines_in_values": True}

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        with self._reader(io.BytesIO(head), None, len(head) + 1) as reader:
            first = _first_of(reader)
        for field in first.schema:
            if pa.types.is_binary(field.type):
                row = next(row for row, value in enumerate(first.column(field.name)) if not _is_utf8(value.as_py()))
                raise BadInputError(
                    f"{self.name}: row {row} (0-based), column {field.name!r}: not UTF-8; convert the file, with iconv"
                )
        return first

    def _read(self, stream: Any, schema: pa.Schema, block_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._reader(stream, schema, block_bytes) as reader:
            yield from reader

    def _reader(self, stream: Any, schema: pa.Schema | None, block_bytes: int) -> pcsv.CSVStreamingReader:
        wanted: dict[str, Any] = {}
        if schema is not None:
            wanted = {"column_types": schema, "include_columns": schema.names}
        return pcsv.open_csv(
            pa.PythonFile(io.BufferedReader(stream), mode="r"),
            read_options=pcsv.ReadOptions(block_size=block_bytes, use_threads=False),
            parse_options=pcsv.ParseOptions(**self._parse),
            convert_options=pcsv.ConvertOptions(**wanted, check_utf8=True, auto_dict_encode=False),
        )

    def _explained(self, said: str, seen: int) -> str:
        """Arrow counts rows from 1, the line of names included."""
        row = re.search(r"Row #(\d+): (.*)", said, re.DOTALL)
        if row is None:
            if "straddl" in said:
                return f"row {seen} (0-based) does not end within the memory there is: is a quote never closed?"
            return _one_line(said)
        what = re.sub(r"^CSV conversion error to (\w+): ", r"not \1: ", row[2])
        column = re.search(r"In CSV column #(\d+)", said)
        where = f", column number {int(column[1])} (0-based)" if column else ""
        return f"row {int(row[1]) - 2} (0-based){where}: {_one_line(what)}"

    def _end(self, stream: _Counted) -> None:
        if stream.quotes % 2:
            raise BadInputError(
                f"{self.name}: an odd number of quotes: one is never closed, or stands in a value without being doubled"
            )


class JsonFile(_TextFile):
    """An object on each line."""

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            raise BadInputError(f"{self.name}: a JSON array; JSON lines have an object on each line")
        with self._reader(io.BytesIO(head), None, len(head) + 1) as reader:
            return _first_of(reader)

    def _read(self, stream: Any, schema: pa.Schema, block_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._reader(stream, schema, block_bytes) as reader:
            for batch in reader:
                yield batch.select(schema.names)

    def _reader(self, stream: Any, schema: pa.Schema | None, block_bytes: int) -> Any:
        return pjson.open_json(
            pa.PythonFile(io.BufferedReader(stream), mode="r"),
            read_options=pjson.ReadOptions(block_size=block_bytes, use_threads=False),
            parse_options=pjson.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="infer" if schema is None else "ignore",
            ),
        )

    def _explained(self, said: str, seen: int) -> str:
        row = re.search(r"^(.*) in row (\d+)$", said, re.DOTALL)
        said = said.removeprefix("JSON parse error: ")
        if row is None:
            return _one_line(said)
        what = re.sub(r"Column\(/([^)]*)\)", r"column '\1'", row[1].removeprefix("JSON parse error: "))
        return f"row {seen + int(row[2])} (0-based): {_one_line(what)}"


def _one_line(said: str) -> str:
    """What Arrow says, which quotes values with their line ends."""
    return " ".join(said.split())


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_of(reader: Any) -> pa.RecordBatch:
    """The first batch, or one without rows."""
    for batch in reader:
        return batch
    return pa.RecordBatch.from_pylist([], reader.schema)


class _Counted(io.RawIOBase):
    """A stream that counts what is taken from it, and its quotes."""

    def __init__(self, stream: Any, *, closes: bool) -> None:
        self.raw_stream, self._closes = stream, closes
        self.taken = self.quotes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        got = self.raw_stream.readinto(target)
        if got:
            self.taken += got
            self.quotes += bytes(target[:got]).count(b'"')
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
