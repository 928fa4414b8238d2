"""Tables as text: CSV, TSV and JSON lines, compressed or not, from files, URLs and standard input."""

from __future__ import annotations

import io
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pjson

from streamcut.errors import BadInputError, given
from streamcut.io.recipe.table import Spelling
from streamcut.io.tables.arrow import NULLS
from streamcut.io.tables.files import SAMPLE_ROWS, BatchSize, TableFile, absent_names, given_role, opened, some, unique_names
from streamcut.io.tables.quotes import Quotes
from streamcut.io.tables.roles import names_are_data
from streamcut.io.text.blocks import BOM
from streamcut.io.text.inputs import NOT_UTF8, STDIN, Bytes, Input, Joined, not_text, open_bytes

GUESS_BYTES = 1 << 20  # types are guessed from this much of a text, regardless of the block size
_SEP = re.compile(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", re.IGNORECASE)
_USUAL = Spelling()
_QUOTED = re.compile(rb'"[^"]*"')
_LEAST_BLOCK = 1 << 18
_GUESS_LINES, _GUESS_MOST = 9, 1 << 26  # or from more, where this many lines are longer


class TextFile(TableFile):
    """The part common to both formats: bytes that are read front to back."""

    guesses = True

    def __init__(self, path: str, spelling: Spelling = _USUAL) -> None:
        super().__init__(path, spelling)
        self._raw: Bytes | None = None  # the file that is read
        self._first: pa.RecordBatch | None = None
        self._kept: Bytes | None = None  # standard input whose beginning has been read
        self._names: list[str] | None = None  # of the columns if there is no line of names
        self._skipped = 0  # bytes of a line before all others

    @property
    def taken(self) -> int:
        with suppress(ValueError, OSError):  # a thread that reads ahead may be closing it
            return 0 if self._raw is None or self.name == STDIN else self._raw.tell()
        return 0

    def schema(self) -> pa.Schema:
        return self.sample().schema

    def sample(self) -> pa.RecordBatch:
        if self._first is None:
            head = self._beginning()
            if what := not_text(head[:16]):
                raise BadInputError(f"{self.name}: {what}")
            try:
                self._first = self._guessed(head)
            except pa.ArrowException as error:
                first = -1 if self.spelled and self._names is None else 0
                raise BadInputError(f"{self.name}: {self._error(str(error), first)}") from None
            unique_names(self._first.schema, self.name)
        return self._first

    @abstractmethod
    def _error(self, said: str, first: int) -> str:
        """Arrow's message on a block whose first line is row `first`."""

    @abstractmethod
    def _guessed(self, head: bytes) -> pa.RecordBatch:
        """The rows of the beginning of a text, with guessed types."""

    def _beginning(self) -> bytes:
        stream = self._bytes()
        head, wanted = b"", GUESS_BYTES
        while len(head) < wanted and (more := stream.read(wanted - len(head))):
            head += more
            if len(head) == wanted < _GUESS_MOST and head.count(b"\n") < _GUESS_LINES:
                wanted *= 2
        if self.name == STDIN:
            self._kept = Joined(head, stream)
        else:
            stream.close()
        if not head.strip():
            raise BadInputError(f"{self.name}: empty")
        self.goes_on = len(head) == wanted
        if len(head) == wanted and (cut := head.rfind(b"\n") + 1):
            head = head[:cut]
        return head

    def _bytes(self) -> Bytes:
        """The decompressed bytes from the beginning on."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return kept
        self._raw = Input(STDIN).open() if self.name == STDIN else opened(self.name)
        return open_bytes(self._raw, self.name)[0]


class CsvFile(TextFile):
    """Values between delimiters with a line of names; quoted values may contain line ends.

    The delimiter is that of a first line `sep=;`, else of `,` `;` tab `|` the most frequent in the line of names, `,` if none is.
    """

    spelled = True

    _fixed: str | None = None  # the delimiter, None: guessed

    def __init__(self, path: str, spelling: Spelling = _USUAL) -> None:
        super().__init__(path, spelling)
        self._delimiter, self._decimal = self._fixed or ",", "."
        self._head = b""  # the bytes that types were guessed from

    @property
    def notes(self) -> list[str]:
        """What was guessed about the text, if it is unusual."""
        mark = "tabs" if self._delimiter == "\t" else repr(self._delimiter)
        notes = [f"columns are separated by {mark}"] if self._delimiter != (self._fixed or ",") else []
        notes += ["decimals are written with a comma"] if self._decimal == "," else []
        if self._names is None and names_are_data(self.sample()) is None:
            notes.append(f"columns are named by the first line, {some(self.schema().names)} (if it is a row: --no-header)")
        return notes

    def written(self, sample: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        texts = {name: pa.string() for name in names}
        return self._parsed(self._head, self._names, column_types=texts, include_columns=list(names)).slice(0, SAMPLE_ROWS)

    def _guessed(self, head: bytes) -> pa.RecordBatch:
        mark = _SEP.match(head)
        self._skipped = mark.end() if mark else len(BOM) if head.startswith(BOM) else 0
        head = head[self._skipped :]
        self._delimiter, self._decimal = _marks(head, mark[1].decode() if mark and self._fixed is None else self._fixed)
        if not self._spelling.header:
            names = re.split(rb"[\r\n]", head, maxsplit=1)[0].replace(b'"', b"").split(self._delimiter.encode())
            numbered = [str(number) for number in range(len(names))]
            self._names = numbered if names != [name.encode() for name in numbered] else None
        first, self._head = self._parsed(head, self._names), head
        if self._spelling.header and names_are_data(first):
            raise BadInputError(
                f"{self.name}: the first line looks like a row ({some(first.schema.names)}), not like names of columns; write "
                "names above it, or convert with --no-header, which names them 0, 1, …"
            )
        for number, field in enumerate(first.schema):
            if pa.types.is_binary(field.type):
                row = next(row for row, value in enumerate(first.column(number)) if not _is_utf8(value.as_py()))
                raise BadInputError(f"{self.name}: row {row} (0-based), column {field.name!r}: {NOT_UTF8}")
        return first

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        """With larger blocks again where a row is longer than one."""
        block, seen = max(size.usual, _LEAST_BLOCK), 0
        while True:
            skip = seen
            try:
                for batch in self._streamed(schema, block):
                    rest = batch.slice(min(skip, batch.num_rows))
                    skip -= batch.num_rows - rest.num_rows
                    seen += rest.num_rows
                    yield rest
                return
            except pa.ArrowException as error:
                if "straddl" not in str(error):
                    first = -(self._names is None)
                    raise BadInputError(f"{self.name}: {self._error(str(error), first, self.schema().names)}") from None
            if block >= size.most or self.name == STDIN:
                raise BadInputError(
                    f"{self.name}: row {seen} (0-based) does not end within the available memory: is a quote never closed?"
                )
            block = min(4 * block, size.most)

    def _streamed(self, schema: pa.Schema, block: int) -> Iterator[pa.RecordBatch]:
        """The rows, read in blocks of so many bytes."""
        with self._bytes() as stream:
            source = io.BufferedReader(Quotes(stream, self._delimiter, self.name))
            source.read(self._skipped)
            yield from pcsv.open_csv(
                pa.PythonFile(source, mode="r"),
                read_options=pcsv.ReadOptions(block_size=block, use_threads=False, column_names=self._names),
                **self._options(True, column_types=schema, include_columns=schema.names),
            )

    def _error(self, said: str, first: int, names: Sequence[str] = ()) -> str:
        """Arrow's message on a block whose first line, its row 1, is row `first` (0-based), with the columns `names`."""
        row = re.search(r"Row #(\d+): (.*)", said, re.DOTALL)
        if row is None:
            return one_line(said)
        what = re.sub(r"^CSV conversion error to (\w+): ", r"not \1: ", row[2])
        if (odd := re.search(r"^not double: invalid value '([^',]+)'", what)) is not None:
            what += f" ({given('missing', odd[1].strip())} if it is no value; features of words are --categorical)"
        column = re.search(r"In CSV column #(\d+)", said)
        number = int(column[1]) if column else 0
        where = "" if column is None else f", column {names[number]!r}" if names else f", column number {number} (0-based)"
        return f"row {first + int(row[1]) - 1} (0-based){where}: {one_line(what)}"

    def _parsed(self, block: bytes, names: Sequence[str] | None = None, **wanted: object) -> pa.RecordBatch:
        read_options = pcsv.ReadOptions(block_size=len(block) + 1, use_threads=False, column_names=names)
        return only_batch(pcsv.read_csv(pa.BufferReader(block), read_options, **self._options(not block.isascii(), **wanted)))

    def _options(self, check_utf8: bool, **wanted: object) -> dict[str, object]:
        nulls = [blank + text for text in (*NULLS, *self._spelling.nulls) for blank in ("", " ")]
        how = pcsv.ConvertOptions(**wanted, check_utf8=check_utf8, decimal_point=self._decimal, null_values=nulls)
        return {
            "parse_options": pcsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            "convert_options": how,
        }


class TsvFile(CsvFile):
    """The same with tabs."""

    _fixed = "\t"


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


def only_batch(table: pa.Table) -> pa.RecordBatch:
    """The only batch of a table, or one without rows."""
    for batch in table.combine_chunks().to_batches():
        return batch
    return pa.RecordBatch.from_pylist([], table.schema)


def one_line(said: str) -> str:
    """Arrow's message on one line: it quotes values with their line ends."""
    return " ".join(said.split())


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


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
            raise BadInputError(f"{self.name}: a JSON array; JSON lines have an object on each line: jq -c '.[]' OLD > NEW")
        self._expect_utf8(head if len(head) < GUESS_BYTES else head[: head.rfind(b"\n") + 1], 0)
        return self._parsed(head, None)

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        """In blocks of whole lines: Arrow's own reader counts the rows of a block, and takes any bytes for UTF-8."""
        first, rest = 0, b""
        with self._bytes() as stream:
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
        batch = None
        if self._all_names:
            with suppress(pa.ArrowException):  # of keys that are not read, whose types may change
                batch = self._parsed(block, schema, "infer")
            if batch is None or not set(self.schema().names).issuperset(batch.schema.names):
                self._expect_names(block, first)
        try:
            return (self._parsed(block, schema) if batch is None else batch).select(schema.names)
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
        try:
            block.decode()
        except UnicodeDecodeError as error:
            row = first + sum(line.strip() != b"" for line in block[: error.start].split(b"\n")[:-1])
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
