"""The source of rows of tables, for `convert` and `predict`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.opened import readable
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import FRAME_NAME
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import CATEGORICAL, TEXT, TableColumn
from streamcut.io.sources.source import GroupCheck, Place, Sizes, ahead, describe, expect_room, read_ahead
from streamcut.io.tables.arrow import ColumnTypeError, without
from streamcut.io.tables.files import BatchSize, TableFile, given_role, is_text, require
from streamcut.io.tables.fitting import recipe_of, to_find, with_numbers, with_words
from streamcut.io.tables.labels import LabelCodings
from streamcut.io.tables.roles import check_types, label_read_as, read_as
from streamcut.io.tables.rows import RowMaker
from streamcut.io.tables.times import check_zone
from streamcut.io.text.inputs import STDIN

if TYPE_CHECKING:
    from streamcut.io.formats.registry import Format, Raw
    from streamcut.io.sources.lazy import Frame

Made = tuple[Chunk, Counter[str], pa.RecordBatch | None, np.ndarray | None]  # RowMaker's result for a batch
_BLOCKS = 8  # size of a batch in blocks of text
_TIMES = 4  # memory of a batch as Arrow and as rows, relative to its own bytes
_SMALLER = 4  # divides batches of texts, and of numbers written as text, which take more memory as rows
_CELL = 80  # bytes per value while rows are made
_FEW_ROWS, _FEW_BYTES = (16, 64), 64 << 20  # least rows of a batch for any number of columns, which have a fixed cost each
_FEW = 1 << 14  # rows of a frame below which a second thread gains nothing
_SCORED = Sizes(row=1 << 29)


class _At(NamedTuple):
    """Where a batch begins: the number of its file, the row in it, the row overall."""

    file: int
    row: int
    read: int


class TableSource:
    """Source over the files of a table.

    options   of a conversion, whose recipe `begin` completes, or that a model is scored with; without a recipe in them all files
              must have the columns of the first one
    raw       of rows that are scored: receives the columns that `maker` keeps, a batch for each block of rows
    """

    rejects = ()

    def __init__(
        self,
        files: Sequence[TableFile],
        maker: RowMaker,
        options: ConvertOptions,
        sizes: Sizes = _SCORED,
        *,
        notes: Sequence[str] = (),
        raw: Raw | None = None,
    ) -> None:
        self.files, self.maker, self.notes, self._sizes, self._options = files, maker, notes, sizes, options
        self._advice = "; raise --memory" if raw is None else ""  # which does not change the sizes of rows that are scored
        self._kept, self._same_columns, rule = None if raw is None else raw.kept, options.recipe is None, maker.recipe.labels
        words = rule.none or rule.words or rule.learned or rule.comparison
        self._one_coding = raw is None and options.labels_as == "auto" and not words  # files may not code a label as 0 and as −1
        self._types: dict[str, pa.DataType] = {}
        self.counters: Counter[str] = Counter()
        self.paths = [file.name for file in files if file.name != FRAME_NAME]
        self.identity = {"inputs": [describe(file.name) for file in files]}
        self.held_bytes = max(file.reading_bytes(maker.columns) + file.batch_bytes for file in files)
        counts = [file.n_rows for file in files]
        self.total_rows = None if None in counts else sum(count for count in counts if count is not None)

    @classmethod
    def open(cls, form: Format, paths: Sequence[str | Frame], options: ConvertOptions, scratch: str) -> Self:
        with readable(paths[0] if isinstance(paths[0], str) else FRAME_NAME):
            files = [form.reader_class()(path, options.spelling) for path in paths]
            for file in files:
                expect_room(options.memory, file.batch_bytes, file.name)
            recipe, notes = recipe_of(files, options)
        return cls(files, RowMaker(recipe, options, learn=options.recipe is None), options, notes=notes)

    @classmethod
    def scoring(cls, form: Format, paths: Sequence[str | Frame], recipe: Recipe, raw: Raw) -> Self:
        """Columns named by `keep` go to `kept`, in batches. Raises BadInputError if one is missing or of another type."""
        if recipe.table is None:
            where = paths[0] if isinstance(paths[0], str) else FRAME_NAME
            raise BadInputError(f"{where}: a table, but the model takes {recipe.in_words()}; convert it as the training data was")
        if raw.labelled and recipe.labels.none:
            raise UsageError("the model was trained on rows without labels")
        files = [form.reader_class()(path, recipe.table.spelling) for path in paths]
        how = (raw.labelled, raw.missing_labels, raw.keep)
        if how not in recipe.prepared:  # else its encoder was made for the rows before
            options = ConvertOptions(recipe=recipe, missing_labels=raw.missing_labels)
            recipe.prepared.clear()
            recipe.prepared[how] = options, RowMaker(recipe, options, labels=raw.labelled, keep=raw.keep)
        options, maker = recipe.prepared[how]
        few = files[0].name == FRAME_NAME and (files[0].n_rows or _FEW) < _FEW
        sizes = _SCORED._replace(threads=1) if few else _SCORED
        return cls(files, maker, options, sizes, raw=raw)

    @property
    def n_features(self) -> int | None:
        return self.maker.encoder.n_features

    @property
    def rereads(self) -> bool:
        """Whether a resumed run must reread all rows."""
        return self.maker.in_order

    def recipe(self) -> Recipe:
        return self.maker.finished_recipe()

    def begin(self, sizes: Sizes) -> None:
        """Find bins, means and words, each by a pass over the rows, if the recipe is to be learned. See Source."""
        self._sizes, options, recipe = sizes, self._options, self.maker.recipe
        if options.recipe is not None:
            return
        wanted = [column for column in self.maker.table.columns if to_find(column, options.standardise)]
        if wanted:
            self._expect_again("bins and means are found", "--no-standardise, and no bins,")
            recipe = with_numbers(recipe, self._values([column.name for column in wanted]), wanted)
        learn = True
        if (options.weighs_words or options.chooses_words) and any(column.role == TEXT for column in self.maker.table.columns):
            self._expect_again("words are counted", "--text-weights=counts")
            rows = TableSource(self.files, RowMaker(recipe, options, learn=True, room=sizes.keys), options, sizes)
            weighed, least, stopped = options.weighs_words, options.min_count, options.stop_words or ()
            recipe, learn = with_words(rows, weighed=weighed, least=least, stopped=stopped), False
        self.maker = RowMaker(recipe, options, learn=learn, room=sizes.keys)

    def _expect_again(self, what: str, without: str) -> None:
        """Raise UsageError if the rows can be read only once."""
        if any(file.name == STDIN for file in self.files):
            raise UsageError(
                f"-: {what} by reading the rows again, and standard input can be read only once; save it to a file, or do "
                f"without: {without} reads it once"
            )

    def blocks(self, start: dict | None = None) -> Generator[tuple[Chunk, dict]]:
        """See Source."""
        begin = start or {"file": 0, "row": 0, "read": 0, "given": 0, "counters": {}}
        self.counters = Counter(begin["counters"])
        groups, first_row, codings = GroupCheck(), begin["given"], LabelCodings(begin.get("codings"))
        for at, (chunk, unusual, kept, labelled) in self._made(_At(begin["file"], begin["row"], begin["read"])):
            file = self.files[at.file]
            state = {**at._asdict(), "given": first_row, "counters": dict(self.counters), "taken": file.taken}
            if self._one_coding:
                state["codings"] = codings.state()
                codings.add(file.name, at.row, chunk.y)
            self.counters.update(unusual)
            if chunk.n_rows == 0:
                continue
            if self._kept is not None and kept is not None:
                self._kept.append(kept)
            chunk = replace(chunk, first_row=first_row)
            if chunk.qid is not None and not self._options.group_by_qid:
                groups.expect_new(chunk.qid, file.name, at.row + (np.arange(chunk.n_rows) if labelled is None else labelled))
            yield chunk, state
            first_row += chunk.n_rows
        if self._one_coding:
            codings.end(self.maker.recipe.labels.column)

    def _made(self, start: _At) -> Iterator[tuple[_At, Made]]:
        """Each batch's place and RowMaker's result, in order, regardless of the thread that made it."""
        threads = self._sizes.threads
        batches = self._batches(self.maker.columns, start)
        with closing(read_ahead(batches) if threads > 1 else batches) as reading:
            for (at, _), made in ahead(reading, self._make, 1 if self.maker.in_order else threads):
                yield at, made()

    def _make(self, item: tuple[_At, pa.RecordBatch]) -> Made:
        at, batch = item
        name = self.files[at.file].name
        try:
            return self.maker.chunk(batch, name, at.row, at.read)
        except pa.ArrowException as error:  # values that Arrow's functions do not accept
            why = " ".join(str(error).split())[:300]
            raise BadInputError(f"{name}: row {at.row} (0-based) or one of the next cannot be read ({why})") from error

    def _values(self, columns: Sequence[str]) -> Iterator[tuple[Place, pa.RecordBatch]]:
        """All batches of these columns."""
        for at, batch in self._batches(columns, _At(0, 0, 0)):
            rows = at.row + np.arange(batch.num_rows)
            yield Place(self.files[at.file].name, rows, at.read), without(batch, self.maker.table.nulls)

    def _batches(self, columns: Sequence[str], start: _At) -> Generator[tuple[_At, pa.RecordBatch]]:
        read, row = start.read, start.row
        for number in range(start.file, len(self.files)):
            schema = self._schema(self.files[number], columns)
            for batch in self.files[number].batches(schema, row, self._size(number)):
                yield _At(number, row, read), batch
                row, read = row + batch.num_rows, read + batch.num_rows
            row = 0

    def _size(self, number: int) -> BatchSize:
        table = self.maker.table
        cells = sum(max(1, len(column.parts)) for column in table.columns) + len(table.crosses)  # each at most one feature
        least, enough = _FEW_ROWS
        row = _CELL * cells
        block = max(int(_BLOCKS * self._sizes.block), row * max(least, min(enough, _FEW_BYTES // row)) // _TIMES)
        texts = self.files[number].guesses or any(column.role == TEXT for column in table.columns)
        rows = max(1, _TIMES * block // row)
        return BatchSize(max(1, block // (_SMALLER if texts else 1)), rows, max(self._sizes.row // 8, block), self._advice)

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

    def _type(self, file: TableFile, dtype: pa.DataType, name: str, column: TableColumn | None) -> pa.DataType:
        """The type used to read a column; a guess from the first file holds for all."""
        labels = self.maker.recipe.labels
        if not file.guesses:
            codes = name == labels.column if column is None else column.role == CATEGORICAL
            return pa.dictionary(pa.int32(), dtype) if codes and is_text(dtype) else dtype
        if column is not None:
            dtype = read_as(dtype, column, spelled=file.spelled)
        elif name == labels.column:
            dtype = label_read_as(dtype, labels, spelled=file.spelled)
        elif name != self.maker.table.qid and pa.types.is_integer(dtype):
            dtype = pa.float64()
        return self._types.setdefault(name, dtype)
