"""The recipe of a table that is converted: roles and types as the user says or as its beginning suggests, and what only reading
finds: bins, means and deviations of numeric columns, and the words of texts, each by a pass over them.

Bins are quantiles of a sample that depends on the rows alone. The last bits of means and deviations, which are sums, depend on
the blocks that rows came in; they are rounded so that those bits do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError, UsageError
from streamcut.io.conversion.shuffle import random_keys
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import NUMERIC, TEXT, TableColumn
from streamcut.io.sources.source import Place, Source
from streamcut.io.tables.arrow import without
from streamcut.io.tables.encoder import numbers_together
from streamcut.io.tables.files import TableFile, require
from streamcut.io.tables.labels import typed_rule
from streamcut.io.tables.roles import check_types, columns_in, label_rule, names_in, roles_of, with_types, written_otherwise

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions

_DIGITS = 12  # binary digits kept in a deviation; a mean is a multiple of the last one
_SMALLEST = 1e-150  # deviations below it: their squares are not normal numbers
SAMPLE = 1 << 17  # values of a column; with fewer rows the quantiles are exact


def recipe_of(files: Sequence[TableFile], options: ConvertOptions) -> tuple[Recipe, list[str]]:
    """(the recipe, except for what only reading finds: bins, categories, words; a sentence for each guess to report).

    Raises the errors of reading the beginnings of the files and of settling the roles of columns.
    """
    recipe, notes = _guessed(files, options) if options.recipe is None else (_checked(options, files[0]), [])
    assert recipe.table is not None
    if options.chooses_words and not any(column.role == TEXT for column in recipe.table.columns):
        raise UsageError(f"{files[0].name}: --min-count and --stop-words are for columns of texts, and there is none (--text)")
    pa.default_memory_pool().release_unused()  # of the samples
    return recipe, notes


def _guessed(files: Sequence[TableFile], options: ConvertOptions) -> tuple[Recipe, list[str]]:
    first, nulls, roles = files[0], options.spelling.nulls, columns_in(options)
    named = [*roles, *names_in(options.drop), *names_in(options.id)]
    rest = len([file.schema() for file in files]) > 1 or first.goes_on  # where columns may be that the sample lacks
    for file in files:
        file.expect(named if rest else (), all_names="*" not in named)
    if not (options.header or first.spelled):
        raise UsageError(f"{first.name}: --no-header is for CSV, and these columns have names")
    sample = first.sample()
    table, labels, notes = roles_of(without(sample, nulls), options, first.name, goes_on=first.goes_on)
    check_types(first.schema(), table, first.name, spelled=first.spelled)
    written = without(first.written(sample, [column.name for column in table.columns]), nulls)
    table = with_types(table, written, first.name)
    notes = [*first.notes, *notes, *written_otherwise([column for column in table.columns if column.name not in roles], written)]
    labels = replace(labels, words=tuple((options.label_map or {}).items()))
    if labels.column is not None:
        words = labels.words or options.labels_as == "words"
        column = without(first.written(sample, [labels.column]) if words else sample.select([labels.column]), nulls).column(0)
        labels = typed_rule(labels, column, options.labels_as, first.name)
    return Recipe("table", options.hash_bits, dtype=options.dtype, labels=labels, table=table), notes


def _checked(options: ConvertOptions, file: TableFile) -> Recipe:
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


class QuantileSample:
    """The values of the rows with the smallest random numbers, which depend on the row number alone, not on the blocks."""

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._keys = np.empty(0, np.uint64)

    def add(self, first_row: int, values: np.ndarray) -> None:
        """Take the values, float64 (n,), of rows from number `first_row` on; nan is skipped."""
        valid = ~np.isnan(values)
        keys = random_keys(0, first_row + np.arange(len(values)))[valid]
        self._keys = np.concatenate([self._keys, keys])
        self._values = np.concatenate([self._values, values[valid]])
        if len(self._keys) > SAMPLE:
            kept = np.argpartition(self._keys, SAMPLE - 1)[:SAMPLE]
            self._keys, self._values = self._keys[kept], self._values[kept]

    def edges(self, column: TableColumn) -> tuple[float, ...]:
        """The lower edges of all bins of `column` but the first: distinct quantiles. Raises BadInputError without values."""
        if not len(self._values):
            raise BadInputError(f"column {column.name!r} has no value to find bins from")
        ordered = np.sort(self._values)
        ranks = np.ceil(np.arange(1, column.bins) * (len(ordered) / column.bins)).astype(np.int64)
        edges = np.unique(ordered[np.minimum(ranks, len(ordered) - 1)])
        return tuple(edges[edges > ordered[0]].tolist())


class Moments:
    """Means and deviations of the values of `columns` columns; nan is skipped."""

    def __init__(self, columns: int) -> None:
        self._count, self._mean, self._squares = np.zeros(columns), np.zeros(columns), np.zeros(columns)

    def add(self, values: np.ndarray) -> None:
        """Take the values, float64 (columns, n), of more rows."""
        missing = np.isnan(values)
        more = values.shape[1] - missing.sum(axis=1)
        count = self._count + more
        part = more / np.maximum(count, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.where(missing, 0.0, values).sum(axis=1) / np.maximum(more, 1.0)
            squares = np.square(np.where(missing, 0.0, values - mean[:, None])).sum(axis=1)
            step = mean - self._mean
            self._squares += squares + step * step * (self._count * part)
            self._mean += step * part
        self._count = count

    def standardised(self) -> list[tuple[float, float]]:
        """(centre, spread) of each that give mean 0 and deviation 1; (value, 1) if all are equal, (0, 1) on overflow."""
        sums = zip(self._count.tolist(), self._mean.tolist(), self._squares.tolist(), strict=True)
        return [_standardised(*moments) for moments in sums]


def _standardised(count: float, mean: float, squares: float) -> tuple[float, float]:
    deviation = math.sqrt(squares / count) if count else 0.0
    if not math.isfinite(deviation) or not math.isfinite(mean):
        return 0.0, 1.0
    if deviation <= 1e-12 * abs(mean) or deviation < _SMALLEST:  # only rounding errors
        return mean, 1.0
    step = math.ldexp(1.0, math.frexp(deviation)[1] - _DIGITS)
    return round(mean / step) * step, round(deviation / step) * step


def to_find(column: TableColumn, standardise: bool) -> bool:
    """Whether a column needs a pass over its values."""
    return (column.bins > 0 and not column.edges) or (standardise and column.role == NUMERIC)


def with_numbers(recipe: Recipe, rows: Iterable[tuple[Place, pa.RecordBatch]], wanted: Sequence[TableColumn]) -> Recipe:
    """`recipe` with the edges of the binned columns among `wanted`, and the centre and spread of the others.

    rows   batches of these columns, each with its place. Raises BadInputError.
    """
    assert recipe.table is not None
    names = [column.name for column in wanted]
    samples = {number: QuantileSample() for number, column in enumerate(wanted) if column.bins}
    others = [number for number, column in enumerate(wanted) if not column.bins]
    moments = Moments(len(others))
    for place, batch in rows:
        values = numbers_together(place, batch, names)
        for number, sample in samples.items():
            sample.add(place.first_row, values[number])
        if others:
            moments.add(values[others] if samples else values)
    changed = {names[number]: replace(wanted[number], edges=sample.edges(wanted[number])) for number, sample in samples.items()}
    for number, (centre, spread) in zip(others, moments.standardised(), strict=True):
        changed[names[number]] = replace(wanted[number], centre=centre, spread=spread)
    columns = tuple(changed.get(column.name, column) for column in recipe.table.columns)
    return replace(recipe, table=replace(recipe.table, columns=columns))


def with_words(rows: Source, *, weighed: bool, least: int = 1, stopped: Iterable[str] = ()) -> Recipe:
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
    assert recipe is not None
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
                where = rows.identity["inputs"][0][0]
                raise BadInputError(f"{where}: of column {column.name!r} {why} is left; lower --min-count")
            if weighed and len(words):
                column = replace(column, documents=documents, frequencies=tuple(counts[words].tolist()))
        columns.append(column)
    names = tuple(name for name, keep in zip(recipe.names, kept.tolist(), strict=True) if keep)
    return replace(recipe, names=names, table=replace(recipe.table, columns=tuple(columns)))
