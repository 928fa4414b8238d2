"""The recipe of a table that is converted: the roles and types of its columns, as the user says or as its beginning suggests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import TEXT
from streamcut.io.tables.arrow import without
from streamcut.io.tables.files import TableFile, require
from streamcut.io.tables.labels import typed_rule
from streamcut.io.tables.roles import check_types, columns_given, label_rule, names_in, roles_of, with_types, written_otherwise

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions


def recipe_of(files: Sequence[TableFile], options: ConvertOptions) -> tuple[Recipe, list[str]]:
    """(the recipe, except for what only reading finds: bins, categories, words; a sentence for each guess worth knowing).

    Raises the errors of reading the beginnings of the files and of settling the roles of columns.
    """
    recipe, told = _guessed(files, options) if options.recipe is None else (_given(options, files[0]), [])
    assert recipe.table is not None
    if options.chooses_words and not any(column.role == TEXT for column in recipe.table.columns):
        raise UsageError(f"{files[0].name}: --min-count and --stop-words are for columns of texts, and there is none (--text)")
    pa.default_memory_pool().release_unused()  # of the samples
    return recipe, told


def _guessed(files: Sequence[TableFile], options: ConvertOptions) -> tuple[Recipe, list[str]]:
    first, nulls, known = files[0], options.spelling.nulls, columns_given(options)
    named = [*known, *names_in(options.drop), *names_in(options.id)]
    rest = len([file.schema() for file in files]) > 1 or first.goes_on  # where columns may be that the sample lacks
    for file in files:
        file.expect(named if rest else (), all_names="*" not in named)
    if not (options.header or first.spelled):
        raise UsageError(f"{first.name}: --no-header is for CSV, and these columns have names")
    table, labels, told = roles_of(without(first.sample(), nulls), options, first.name, goes_on=first.goes_on)
    check_types(first.schema(), table, first.name, spelled=first.spelled)
    written = without(first.written([column.name for column in table.columns]), nulls)
    table = with_types(table, written, first.name)
    told = [*first.told, *told, *written_otherwise([each for each in table.columns if each.name not in known], written)]
    labels = replace(labels, words=tuple((options.label_map or {}).items()))
    if labels.column is not None:
        words = labels.words or options.labels_as == "words"
        sample = without(first.written([labels.column]) if words else first.sample().select([labels.column]), nulls)
        labels = typed_rule(labels, sample.column(0), options.labels_as, first.name)
    return Recipe("table", options.hash_bits, dtype=options.dtype, labels=labels, table=table), told


def _given(options: ConvertOptions, file: TableFile) -> Recipe:
    """The recipe of the options, checked against the first file."""
    recipe, labels, schema, where = options.recipe, options.labels, file.schema(), file.name
    if recipe.table is None:
        raise BadInputError(f"{where}: a table, but the recipe is one of {recipe.in_words()}")
    if labels is not None:
        rule = label_rule(schema, labels, where)
        same = (rule.column, rule.comparison) == (recipe.labels.column, recipe.labels.comparison)
        recipe = replace(recipe, labels=recipe.labels if same else rule)
    elif not recipe.labels.none and recipe.labels.column not in schema.names:
        raise BadInputError(f"{where}: no column {recipe.labels.column!r} with the labels; --label=none if there are none")
    require(where, schema, [column.name for column in recipe.table.columns])
    return recipe
