"""Table files of any format: their columns, and their rows in Arrow batches from any row on."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from streamcut.errors import BadInputError, NotFoundError, StreamcutError, UsageError, given
from streamcut.foundation.opened import IrregularFileError, opened_file, regular
from streamcut.io.recipe.table import Spelling
from streamcut.io.remote import RemoteFile
from streamcut.io.tables.arrow import plain_batch
from streamcut.io.text.inputs import STDIN

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_COLUMN_BYTES = 12 << 10
BUFFER = 1 << 20  # bytes of a column chunk that Parquet reads at once
SAMPLE_ROWS, SAMPLE_BYTES = 1 << 13, 8 << 20
_CODED = 1 << 18  # most bytes of a dictionary that is passed on with every batch
_PAGES = 3 << 20  # of a column: a page of the usual size, packed and unpacked, and its dictionary
_USUAL = Spelling()
_AT_ONCE = 4 << 20  # least bytes per request for a file behind a URL


class BatchSize(NamedTuple):
    """Limits of a batch: bytes (approximate), rows, and bytes of a single longer row; what to do if that is too long."""

    usual: int = 4 << 20
    rows: int = 1 << 14
    most: int = 64 << 20
    advice: str = ""


_USUAL_SIZE = BatchSize()


class TableFile(ABC):
    """One file of a table, or what is read like one, made of its path (or frame) and the Spelling of its values.

    name       for messages
    n_rows     None if unknown before reading
    guesses, spelled   whether types are guessed from the beginning; whether all values are written as text
    keyed      whether rows name their values, so that a name may be absent
    goes_on    whether rows follow those that types are guessed from
    batch_bytes        memory of a batch that is read whole, whatever was asked for
    """

    guesses = spelled = keyed = goes_on = False
    batch_bytes = 0

    def __init__(self, name: str, spelling: Spelling = _USUAL) -> None:
        self.name, self._spelling = name, spelling
        self.n_rows: int | None = None

    def reading_bytes(self, columns: Sequence[str]) -> int:
        """Memory for reading and encoding these columns, in addition to batches."""
        return len(columns) * _COLUMN_BYTES

    @property
    def taken(self) -> int:
        """Bytes read so far of a text."""
        return 0

    @property
    def notes(self) -> list[str]:
        """A sentence for each guess about the file that the user should know."""
        return []

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of the columns; for text, types are guessed from its beginning."""

    @abstractmethod
    def sample(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns; no rows for an empty file."""

    def expect(self, names: Sequence[str], *, all_names: bool = False) -> None:  # noqa: B027
        """Where rows name their values, `names` are columns, too; `all_names`: a name that is none of the columns is an error."""

    def written(self, sample: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """These columns of the sample, as text if all values are written as text."""
        return sample.select(names)

    def batches(self, schema: pa.Schema, start: int = 0, size: BatchSize = _USUAL_SIZE) -> Iterator[pa.RecordBatch]:
        """The columns of `schema` from row `start` on.

        Text is read as these types. Other files have their own; Parquet yields texts as dictionaries if `schema` says so.
        Raises BadInputError.
        """
        skip = start
        for batch in self._batches(schema, size):
            dropped = min(skip, batch.num_rows)
            skip -= dropped
            yield from pieces(batch.slice(dropped), size)

    @abstractmethod
    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        """The columns of `schema` in all rows, from the first one on, in batches of about this size or larger ones."""


def opened(path: str) -> io.BufferedReader:
    """The bytes of a local file or a URL. Raises NotFoundError."""
    if "://" not in path:
        try:
            return opened_file(path)  # buffered: a file system may return less than asked for
        except IrregularFileError as error:
            raise NotFoundError(f"{path}: {error.strerror}; a table as text may be piped to standard input, -") from None
        except OSError as error:
            raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    return io.BufferedReader(RemoteFile(path), _AT_ONCE)


def _checked(path: str) -> str:
    """`path`, checked to be a regular file. Raises NotFoundError."""
    try:
        return regular(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None


def unique_names(schema: pa.Schema, path: str) -> pa.Schema:
    """`schema`; BadInputError when two columns have the same name."""
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise BadInputError(f"{path}: {len(twice)} column names occur twice, for example {twice[0]!r}; rename the columns")
    return schema


def absent_names(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Those of `names` that rows with the names of `schema` may lack: no name there is spelled alike."""
    alike = {name.strip().lower() for name in schema.names}
    return [name for name in dict.fromkeys(names) if name.strip().lower() not in alike and name != "*"]


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + ", …" * (len(names) > 3)


def given_role(names: str) -> str:
    """What to say about columns that cannot be guessed."""
    roles = given("numeric", names), given("categorical", names), given("drop", names)
    return "say what it is: {} or {}, or leave it out: {}".format(*roles)


def require(path: str, schema: pa.Schema, wanted: Sequence[str]) -> None:
    """Raise BadInputError when columns are missing."""
    there = set(schema.names)
    lacking = [name for name in wanted if name not in there]
    if lacking:
        close = [name for name in schema.names if name.strip().lower() == lacking[0].strip().lower()]
        meant = f" (is {close[0]!r} meant?)" if close else ""
        raise BadInputError(f"{path}: no column {lacking[0]!r}{meant}; it has {', '.join(schema.names) or 'none'}")


class _ColumnSize(NamedTuple):
    """Most bytes of a column of Parquet in any row group: per row, of a dictionary beyond the codes, of all its rows."""

    row: int = 0
    dictionary: int = 0
    chunk: int = 0


class ParquetTable(TableFile):
    """A Parquet file, row group after row group."""

    def __init__(self, path: str, spelling: Spelling = _USUAL) -> None:
        super().__init__(path, spelling)
        if path == STDIN:
            raise UsageError("-: Parquet cannot be read from standard input; give the file")
        with self._open() as file:
            self._schema = unique_names(file.schema_arrow, path)
            self.n_rows = file.metadata.num_rows
            self._metadata = file.metadata

    def reading_bytes(self, columns: Sequence[str]) -> int:
        return super().reading_bytes(columns) + sum(
            min(_PAGES, self._sizes[name].chunk) for name in columns if name in self._sizes
        )

    def schema(self) -> pa.Schema:
        return self._schema

    def sample(self) -> pa.RecordBatch:
        rows = min(SAMPLE_ROWS, max(1, SAMPLE_BYTES // self._row_bytes(self._schema)))
        with self._open() as file, damage_of(self.name):
            for batch in file.iter_batches(rows, range(min(1, self._metadata.num_row_groups)), use_threads=False):
                return plain_batch(batch)
        return pa.RecordBatch.from_pylist([], self._schema)

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        coded = [field.name for field in schema if pa.types.is_dictionary(field.type) and self._coded(field.name)]
        typed = [self._schema.field(name) if name not in coded else schema.field(name) for name in schema.names]
        rows = min(size.rows, max(1, size.usual // self._row_bytes(pa.schema(typed))))
        with self._open(coded) as file, damage_of(self.name):
            for batch in file.iter_batches(rows, columns=schema.names, use_threads=False):
                yield plain_batch(batch)

    def _coded(self, name: str) -> bool:
        """Whether texts are read as dictionary codes: a large dictionary would cost memory and time in every batch."""
        return self._sizes[name].dictionary <= _CODED and is_text(self._schema.field(name).type)

    def _row_bytes(self, schema: pa.Schema) -> int:
        """Bytes in memory of a row of these columns, about."""
        wide = [8 if pa.types.is_dictionary(field.type) else max(8, self._sizes[field.name].row + 4) for field in schema]
        return max(1, sum(wide))

    @cached_property
    def _sizes(self) -> dict[str, _ColumnSize]:
        sizes = dict.fromkeys(self._schema.names, _ColumnSize())
        for group in map(self._metadata.row_group, range(self._metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                name = chunk.path_in_schema if chunk.path_in_schema in sizes else chunk.path_in_schema.split(".")[0]
                size = chunk.total_uncompressed_size
                dictionary = size - 4 * group.num_rows if chunk.has_dictionary_page else size
                widest = sizes.get(name, _ColumnSize())
                here = _ColumnSize(size // max(group.num_rows, 1), dictionary, size)
                sizes[name] = _ColumnSize(*map(max, widest, here))
        return sizes

    def _open(self, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        import pyarrow.parquet as pq  # it also loads network code, which other formats need not wait for

        with damage_of(self.name, "not a readable Parquet file"):
            source = opened(self.name) if "://" in self.name else _checked(self.name)
            return pq.ParquetFile(source, pre_buffer=False, buffer_size=BUFFER, read_dictionary=list(dictionaries))


class ArrowFile(TableFile):
    """An Arrow IPC file (Feather 2) or stream."""

    def __init__(self, path: str, spelling: Spelling = _USUAL) -> None:
        super().__init__(path, spelling)
        if path == STDIN:
            raise UsageError("-: give Arrow data as a file")
        with self._reader() as reader:
            self._schema = unique_names(reader.schema, path)
            size = 0 if "://" in path else 2 * os.path.getsize(path)  # a batch as it is stored, and as it is
            self.batch_bytes = size // max(reader.num_record_batches if isinstance(reader, pa.RecordBatchFileReader) else 1, 1)

    def schema(self) -> pa.Schema:
        return self._schema

    def sample(self) -> pa.RecordBatch:
        for batch in self.batches(self._schema, 0, BatchSize(SAMPLE_BYTES, SAMPLE_ROWS, SAMPLE_BYTES)):
            return batch.slice(0, SAMPLE_ROWS)
        return pa.RecordBatch.from_pylist([], self._schema)

    def _batches(self, schema: pa.Schema, size: BatchSize) -> Iterator[pa.RecordBatch]:
        with damage_of(self.name), self._reader() as reader:
            if isinstance(reader, pa.RecordBatchFileReader):
                reader = map(reader.get_batch, range(reader.num_record_batches))
            for batch in reader:
                yield checked_batch(batch, schema)

    def _reader(self) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        source = opened(self.name)
        with damage_of(self.name, "neither an Arrow file nor an Arrow stream"):
            try:
                return pa.ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                return pa.ipc.open_stream(source)


@contextmanager
def damage_of(name: str, what: str = "") -> Iterator[None]:
    """Turn the errors of Arrow on a file into BadInputError, with `what` is wrong with it: by default, damage."""
    try:
        yield
    except StreamcutError:
        raise
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())
        raise BadInputError(
            f"{name}: {what} ({why})" if what else f"{name}: reading stopped ({why}); the file is damaged"
        ) from None


def checked_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, once their offsets, which kernels trust, are known to be sound. Raises ArrowInvalid."""
    batch = batch.select(schema.names)
    batch.validate(full=True)
    return plain_batch(batch)


def pieces(batch: pa.RecordBatch, size: BatchSize) -> Iterator[pa.RecordBatch]:
    """`batch` in parts of this size; none if it has no rows."""
    least = 8 * batch.num_columns * batch.num_rows
    plain = batch.get_total_buffer_size() + least  # at most; the sum of its columns takes longer
    if plain > size.usual:
        sizes = [8 * len(column) if pa.types.is_dictionary(column.type) else column.nbytes for column in batch.columns]
        plain = max(sum(sizes), least)
    rows = min(size.rows, max(1, batch.num_rows * size.usual // max(plain, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def is_text(dtype: pa.DataType) -> bool:
    return pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
