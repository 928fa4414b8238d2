"""The input tables of `convert`: opened, with the roles of their columns settled, ready to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.io.conversion.plan import expect_room
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import TEXT
from streamcut.io.tables.arrow import without
from streamcut.io.tables.files import ParquetTable, TableFile, require
from streamcut.io.tables.labels import typed_rule
from streamcut.io.tables.roles import check_types, columns_given, label_rule, names_in, roles_of, with_types, written_otherwise
from streamcut.io.tables.rows import RowMaker
from streamcut.io.tables.source import Reading, TableRows, batch_bytes, to_find, with_numbers, with_words
from streamcut.io.text.inputs import STDIN

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions

_FEW = 16
_COLUMN = 7 << 10  # bytes per column in the encoder, in the recipe, and in each Arrow batch
_BLOCKS = 8  # size of a batch in blocks of text


class OpenedTables:
    """The files of a table and its recipe, except for what only reading finds (bins, categories, words).

    Raises the errors of reading their beginnings and of settling the roles of columns.

    held_bytes   memory in addition to the batches
    told         a sentence for each guess about a column that the user should know
    """

    def __init__(self, files: Sequence[TableFile], options: ConvertOptions) -> None:
        self.files, self._options = files, options
        self.told: list[str] = []
        first = files[0]
        for file in files:
            expect_room(options.memory, file.held_bytes(), f"{file.name}: its largest pages or batch")
        if options.recipe is None:
            named = [*columns_given(options), *names_in(options.drop), *names_in(options.id)]
            rest = len([file.schema() for file in files]) > 1 or first.goes_on  # where columns may be that the sample lacks
            for file in files:
                file.expect(named if rest else (), all_names="*" not in named)
            if not (options.header or first.spelled):
                raise UsageError(f"{first.name}: --no-header is for CSV, and these columns have names")
            nulls = options.spelling.nulls
            table, labels, told = roles_of(without(first.sample(), nulls), options, first.name, goes_on=first.goes_on)
            self.told = [*first.told, *told]
            check_types(first.schema(), table, first.name, spelled=first.spelled)
            written = without(first.written([column.name for column in table.columns]), nulls)
            table = with_types(table, written, first.name)
            self.told += written_otherwise([each for each in table.columns if each.name not in columns_given(options)], written)
            labels = replace(labels, words=tuple((options.label_map or {}).items()))
            if labels.column is not None:
                words = labels.words or options.labels_as == "words"
                sample = without(first.written([labels.column]) if words else first.sample().select([labels.column]), nulls)
                labels = typed_rule(labels, sample.column(0), options.labels_as, first.name)
            self.recipe = Recipe("table", options.hash_bits, dtype=options.dtype, labels=labels, table=table)
        else:
            self.recipe = _given(options.recipe, first.schema(), options.labels, first.name)
        self._learn = options.recipe is None
        if options.chooses_words and not any(column.role == TEXT for column in self.table.columns):
            raise UsageError(f"{first.name}: --min-count and --stop-words are for columns of texts, and there is none (--text)")
        others = (self.recipe.labels.column, self.table.qid, self.table.weight)
        columns = dict.fromkeys([*(column.name for column in self.table.columns), *(name for name in others if name is not None)])
        self.held_bytes = max(file.held_bytes(list(columns)) for file in files) + _COLUMN * len(columns)
        pa.default_memory_pool().release_unused()  # of the samples

    @property
    def n_features(self) -> int | None:
        if self.recipe.hash_bits is not None:
            return 1 << self.recipe.hash_bits
        return None if self._learn or self.recipe.names is None else len(self.recipe.names)

    def reading_bytes(self, block_bytes: int, threads: int) -> int:
        """Memory for reading with a number of threads."""
        return self.held_bytes + batch_bytes(_BLOCKS * block_bytes, threads, self.table)

    def rows(self, block_bytes: int, most_bytes: int, threads: int, room: int | None = None) -> TableRows:
        """The rows, with `room` for learned keys; bins are found first. Raises BadInputError."""
        block, grouped = _BLOCKS * block_bytes, not self._options.group_by_qid
        rule, reading = self.recipe.labels, Reading(block, max(most_bytes, block), threads)
        same_columns = self._learn
        standardise = self._learn and self._options.standardise
        if any(to_find(column, standardise) for column in self.table.columns):
            self._expect_again("bins and means are found", "--no-standardise, and no bins,")
            self.recipe = with_numbers(self.recipe, TableRows(self.files, self._maker(), reading), standardise)
        most = room if self._learn else None
        options, texts = self._options, any(column.role == TEXT for column in self.table.columns)
        weighed, chosen = options.weighs_words, options.chooses_words
        if (weighed or chosen) and self._learn and texts:
            self._expect_again("words are counted", "--text-weights=counts")
            learning = TableRows(self.files, self._maker(most), reading, grouped=False)
            self.recipe = with_words(learning, weighed=weighed, least=options.min_count, stopped=options.stop_words or ())
            self._learn = False
        maker = self._maker(most if self._learn else None)
        one_coding = self._options.labels_as == "auto" and not (rule.none or rule.words or rule.learned or rule.comparison)
        return TableRows(self.files, maker, reading, grouped=grouped, same_columns=same_columns, one_coding=one_coding)

    def _expect_again(self, what: str, without: str) -> None:
        """Raise UsageError if the rows can be read only once."""
        if any(file.name == STDIN for file in self.files):
            raise UsageError(
                f"-: {what} by reading the rows again, and standard input can be read only once; save it to a file, or do "
                f"without: {without} reads it once"
            )

    @property
    def table(self):
        assert self.recipe.table is not None
        return self.recipe.table

    def _maker(self, room: int | None = None) -> RowMaker:
        options, rule = self._options, self.recipe.labels
        return RowMaker(
            self.recipe,
            learn=self._learn,
            learn_labels=self._learn and rule.learned and not rule.words,
            most=options.max_categories,
            missing_labels=options.missing_labels,
            dtype=options.dtype or self.recipe.dtype,
            room=room,
        )


def holds_lists(path: str, index_column: str) -> bool:
    """Whether `index_column` of a Parquet file holds lists of feature numbers."""
    schema = ParquetTable(path).schema()
    if index_column not in schema.names:
        return False
    found = schema.field(index_column).type
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found))


def _given(recipe: Recipe, schema: pa.Schema, labels: str | None, where: str) -> Recipe:
    """A given recipe, checked against a table with these columns."""
    table = recipe.table
    if table is None:
        raise BadInputError(f"{where}: a table, but the recipe is one of {recipe.in_words()}")
    if labels is not None:
        rule = label_rule(schema, labels, where)
        same = (rule.column, rule.comparison) == (recipe.labels.column, recipe.labels.comparison)
        recipe = replace(recipe, labels=recipe.labels if same else rule)
    elif not recipe.labels.none and recipe.labels.column not in schema.names:
        raise BadInputError(f"{where}: no column {recipe.labels.column!r} with the labels; --label=none if there are none")
    require(where, schema, [column.name for column in table.columns])
    return recipe
