"""Rows of tables: the entry point for `convert` and `predict`."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import CATEGORICAL, NUMERIC, TEXT, Column, Table
from streamcut.io.sources.row_source import GroupCheck, ahead, check_groups, describe, one_ahead
from streamcut.io.tables.arrow import ColumnTypeError, ValueOfRowError, floats_together, numbers_of, without
from streamcut.io.tables.files import BatchSize, TableFile, given_role, is_text, require
from streamcut.io.tables.fitting import found
from streamcut.io.tables.labels import LabelCodings
from streamcut.io.tables.roles import check_types, label_read_as, read_as
from streamcut.io.tables.rows import RowMaker
from streamcut.io.tables.times import check_zone
from streamcut.io.text.inputs import STDIN

Made = tuple[Chunk, Counter[str], Any, np.ndarray | None]  # RowMaker's result for a batch
_TIMES = 4  # memory of a batch as Arrow and as rows, relative to its own bytes
_SMALLER = 4  # divides batches of texts, and of numbers written as text, which take more memory as rows
_CELL = 40  # bytes per value while rows are made
_FEW_ROWS, _FEW_BYTES = (16, 64), 64 << 20  # least rows of a batch for any number of columns, which have a fixed cost each


@dataclass(frozen=True, slots=True)
class Reading:
    """How batches are read: their bytes, the longest row, and the number of encoding threads."""

    block_bytes: int = 1 << 20
    most_bytes: int = 64 << 20
    threads: int = 1


class _Place(NamedTuple):
    """Where a batch begins: the number of its file, the row in it, the row overall."""

    file: int
    row: int
    read: int


class TableRows:
    """RowSource over the files of a table.

    same_columns   all files must have the columns of the first one
    kept           receives the columns that `maker` keeps, a batch for each block of rows
    one_coding     files that code the same label as 0 and as −1 are refused
    """

    def __init__(
        self,
        files: Sequence[TableFile],
        maker: RowMaker,
        reading: Reading,
        *,
        grouped: bool = True,
        same_columns: bool = True,
        kept: deque[pa.RecordBatch] | None = None,
        one_coding: bool = False,
    ) -> None:
        self.files, self.maker, self.reading, self.grouped = files, maker, reading, grouped
        self._same_columns, self._kept, self._one_coding = same_columns, kept, one_coding
        self._types: dict[str, pa.DataType] = {}
        self.counters: Counter[str] = Counter()
        self.identity = {"inputs": [described(file.name) for file in files]}
        self.n_features = maker.encoder.n_features
        counts = [file.n_rows for file in files]
        if None not in counts:
            self.total_rows = sum(count for count in counts if count is not None)

    @property
    def rereads(self) -> bool:
        """Whether a resumed run must reread all rows."""
        return self.maker.in_order

    def recipe(self) -> Recipe:
        return self.maker.finished_recipe()

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """See RowSource."""
        begin = start or {"file": 0, "row": 0, "read": 0, "given": 0, "counters": {}}
        self.counters = Counter(begin["counters"])
        groups, given, codings = GroupCheck(), begin["given"], LabelCodings(begin.get("codings", ()))
        for file, row, read, (chunk, unusual, kept, labelled) in self._made(begin["file"], begin["row"], begin["read"]):
            place = {"file": file, "row": row, "read": read, "given": given, "counters": dict(self.counters)}
            place["offset"] = self.files[file].position or 0
            if self._one_coding:
                place["codings"] = codings.state()
                codings.add(self.files[file].name, row, chunk.y)
            self.counters.update(unusual)
            if chunk.n_rows == 0:
                continue
            if self._kept is not None and kept is not None:
                self._kept.append(kept)
            chunk = replace(chunk, first_row=given)
            if chunk.qid is not None and self.grouped:
                check_groups(groups, chunk.qid, self.files[file].name, row, labelled)
            yield chunk, place
            given += chunk.n_rows
        if self._one_coding:
            codings.end(self.maker.recipe.labels.column)

    def _made(self, file: int, row: int, read: int) -> Iterator[tuple[int, int, int, Made]]:
        """(file, row in it, row overall, result of RowMaker) of each batch, in order, regardless of the thread that made it."""
        threads, pipe = self.reading.threads, any(each.name == STDIN for each in self.files)
        places = self._places(file, row, read)
        if threads > 1 and not pipe:  # a read from a silent pipe could not be interrupted
            places = one_ahead(places)
        for (at, _), made in ahead(places, self._make, 1 if self.maker.in_order else threads):
            yield at.file, at.row, at.read, made()

    def _places(self, file: int, row: int, read: int) -> Iterator[tuple[_Place, pa.RecordBatch]]:
        for number, first, batch in self._read(self.maker.columns, file, row):
            yield _Place(number, first, read), batch
            read += batch.num_rows

    def _make(self, item: tuple[_Place, pa.RecordBatch]) -> Made:
        at, batch = item
        name = self.files[at.file].name
        try:
            return self.maker.chunk(batch, name, at.row, at.read)
        except pa.ArrowException as error:  # values that Arrow's functions do not accept
            why = " ".join(str(error).split())[:300]
            raise BadInputError(f"{name}: row {at.row} (0-based) or one of the next cannot be read ({why})") from error

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """(number of the file, row in it, batch) of `columns`. Raises BadInputError."""
        for number, first, batch in self._read(columns):
            yield number, first, without(batch, self.maker.table.nulls)

    def _read(self, columns: Sequence[str], file: int = 0, row: int = 0) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        for number in range(file, len(self.files)):
            first = row if number == file else 0
            schema = self._schema(self.files[number], columns)
            for batch in self.files[number].batches(schema, first, self._size(number)):
                yield number, first, batch
                first += batch.num_rows

    def _size(self, number: int) -> BatchSize:
        table = self.maker.table
        texts = self.files[number].guesses or any(column.role == TEXT for column in table.columns)
        block = _block_bytes(self.reading.block_bytes, table)
        rows = max(1, _TIMES * block // (2 * _CELL * cells(table)))
        return BatchSize(max(1, block // (_SMALLER if texts else 1)), rows, max(self.reading.most_bytes, block))

    def _schema(self, file: TableFile, columns: Sequence[str]) -> pa.Schema:
        """The types used to read `columns` of a file."""
        table, first = self.maker.table, self.files[0]
        roles = {column.name: column for column in table.columns}
        if not roles.keys().isdisjoint(file.schema().names):
            file.expect([*roles, *(first.schema().names if self._same_columns else ())])
        schema = file.schema()
        if table.unnamed and file.spelled and len(schema) != table.unnamed:
            raise BadInputError(
                f"{file.name}: {len(schema)} columns without names, but it takes {table.unnamed}, as in training, to tell which "
                "is which; one that is not known, such as the labels, may be empty"
            )
        require(file.name, schema, columns)
        if self._same_columns and set(schema.names) != set(first.schema().names):
            other = sorted(set(schema.names) ^ set(first.schema().names))[0]
            more = f" ({given_role(other)})" if file.keyed else ""
            here, there = (file.name, first.name) if other in schema.names else (first.name, file.name)
            raise BadInputError(f"{file.name}: other columns than {first.name}: {here} has {other!r}, {there} does not{more}")
        check_types(schema, self.maker.table, file.name, spelled=file.spelled)
        for name in columns:
            try:
                check_zone(schema.field(name).type)
            except ColumnTypeError as error:
                raise BadInputError(f"{file.name}: column {name!r} {error}") from None
        typed = [pa.field(name, self._type(file, schema.field(name).type, name, roles.get(name))) for name in columns]
        return pa.schema(typed)

    def _type(self, file: TableFile, found: pa.DataType, name: str, column: Column | None) -> pa.DataType:
        """The type used to read a column; a guess from the first file holds for all."""
        labels = self.maker.recipe.labels
        if not file.guesses:
            codes = name == labels.column if column is None else column.role == CATEGORICAL
            return pa.dictionary(pa.int32(), found) if codes and is_text(found) else found
        if column is not None:
            found = read_as(found, column, spelled=file.spelled)
        elif name == labels.column:
            found = label_read_as(found, labels, spelled=file.spelled)
        elif name != self.maker.table.qid and pa.types.is_integer(found):
            found = pa.float64()
        return self._types.setdefault(name, found)


def batch_bytes(block_bytes: int, threads: int, table: Table) -> int:
    """Memory for the batches in flight: one being read, one per thread, one with the caller."""
    return (threads + 2 if threads > 1 else 1) * _TIMES * _block_bytes(block_bytes, table)


def _block_bytes(wanted: int, table: Table) -> int:
    row = 2 * _CELL * cells(table)
    least, enough = _FEW_ROWS
    return max(wanted, row * max(least, min(enough, _FEW_BYTES // row)) // _TIMES)


def cells(table: Table) -> int:
    """Number of values of a row, each of which becomes at most one feature; a text counts as one."""
    return sum(max(1, len(column.parts)) for column in table.columns) + len(table.crosses)


def with_numbers(recipe: Recipe, rows: TableRows, standardise: bool) -> Recipe:
    """`recipe` with the edges of its binned columns and, with `standardise`, the centre and spread of other numeric columns.

    Makes one pass over these columns. Raises BadInputError.
    """
    assert recipe.table is not None
    wanted = [column for column in recipe.table.columns if to_find(column, standardise)]
    if not wanted:
        return recipe
    edges, moments = found(wanted, _numbers(rows, [column.name for column in wanted]))
    columns = [replace(column, edges=edges.get(column.name, column.edges)) for column in recipe.table.columns]
    for number, column in enumerate(columns):
        if column.name in moments:
            centre, spread = moments[column.name]
            columns[number] = replace(column, centre=centre, spread=spread)
    return replace(recipe, table=replace(recipe.table, columns=tuple(columns)))


def to_find(column: Column, standardise: bool) -> bool:
    """Whether a column needs a pass over its values."""
    return (column.bins > 0 and not column.edges) or (standardise and column.role == NUMERIC)


def with_words(rows: TableRows, *, weighed: bool, least: int = 1, stopped: Iterable[str] = ()) -> Recipe:
    """The recipe learned by `rows`, with the words of texts that occur in at least `least` rows and are not `stopped`.

    A run of words is dropped with any of its words. `weighed`: texts have tf-idf weights, and the recipe has the document
    frequency of each word. One pass over the rows. Raises BadInputError for a text column left without words.
    """
    counts, documents = np.zeros(0, np.int64), 0
    for chunk, _ in rows.blocks():
        more = np.bincount(chunk.indices, minlength=len(counts))  # a feature occurs once per row
        more[: len(counts)] += counts
        counts, documents = more, documents + chunk.n_rows
    recipe, stopped = rows.recipe(), frozenset(stopped)
    assert recipe.table is not None
    assert recipe.names is not None
    counts = np.concatenate([counts, np.zeros(len(recipe.names) - len(counts), np.int64)])
    kept = np.ones(len(counts), bool)
    columns = []
    for column in recipe.table.columns:
        if column.role == TEXT and documents:
            words = np.array(recipe.words_of(column), np.int64)
            kept[words] = counts[words] >= least
            if stopped:
                begin = 0 if column.bare else len(recipe.table.key(column.name)) + 1
                kept[words] &= [stopped.isdisjoint(recipe.names[word][begin:].split(" ")) for word in words.tolist()]
            words = words[kept[words]]
            if not len(words) and (least > 1 or stopped):
                why = f"no word that is in {least:,} rows or more" if least > 1 else "no word"
                raise BadInputError(f"{rows.files[0].name}: of column {column.name!r} {why} is left; lower --min-count")
            if weighed and len(words):
                column = replace(column, documents=documents, frequencies=tuple(counts[words].tolist()))
        columns.append(column)
    names = tuple(name for name, keep in zip(recipe.names, kept.tolist(), strict=True) if keep)
    return replace(recipe, names=names, table=replace(recipe.table, columns=tuple(columns)))


def _numbers(rows: TableRows, names: Sequence[str]) -> Iterator[tuple[int, np.ndarray]]:
    """(rows before, values of the columns, float64 (columns, n)) of each batch."""
    read = 0
    for number, first, batch in rows.batches(names):
        values = floats_together(batch, names)
        if values is None or np.isinf(values).any():
            values = np.empty((len(names), batch.num_rows))
            for at, name in enumerate(names):
                try:
                    values[at] = numbers_of(batch.column(name))
                except ColumnTypeError as error:
                    raise BadInputError(f"{rows.files[number].name}: column {name!r} {error}") from None
                except ValueOfRowError as error:
                    where = f"{rows.files[number].name}: row {first + error.row} (0-based), column {name!r}"
                    raise BadInputError(f"{where}: {error.what}") from None
        yield read, values
        read += batch.num_rows


def described(name: str) -> list:
    """As `describe`; of a pipe or a frame only the name is known."""
    return describe(name) if os.path.exists(name) and name != STDIN else [name, None, None]
