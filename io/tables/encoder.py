"""Encodes a batch of a table as rows of features by the recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, BINNED, NUMERIC, TEXT, TIME, TableColumn
from streamcut.io.sources.source import Place
from streamcut.io.tables import kernels as k
from streamcut.io.tables.arrow import ColumnTypeError, ValueOfRowError, floats_together, numbers_of
from streamcut.io.tables.kernels import words_from
from streamcut.io.tables.keys import NONE, UNSEEN, KeyColumn, Keys, Vocabulary, Words, coded
from streamcut.io.tables.texts import Runs, words_of_texts
from streamcut.io.tables.times import part_of_time, times_of
from streamcut.io.tables.values import escaped, words_of

T = TypeVar("T")
_NOTHING = np.array([NONE], np.int32)
_PLAIN = (pa.string(), pa.large_string())
_TIMES = 4  # keys per word of a batch: with more, indexing them takes longer than looking up the distinct words
_NO_VALUE = "no value (--missing=own gives it a feature of its own)"


def said(place: Place, name: str, make: Callable[[], T]) -> T:
    """The result of `make` on column `name` of these rows; its errors are raised with the place and the column."""
    try:
        return make()
    except ValueOfRowError as error:
        raise BadInputError(f"{place(error.row)}, column {name!r}: {error.what}") from None
    except ColumnTypeError as error:
        raise BadInputError(f"{place.file}: column {name!r} {error}") from None


def numbers_together(place: Place, batch: pa.RecordBatch, names: Sequence[str]) -> np.ndarray:
    """float64 (columns, rows) of columns of these rows, nan where a value is missing. Raises BadInputError for infinities."""
    values = floats_together(batch, names)
    if values is None or np.isinf(values).any():
        values = np.empty((len(names), batch.num_rows))
        for out, name in zip(values, names, strict=True):
            out[:] = said(place, name, partial(numbers_of, batch.column(name)))
    return values


@dataclass(slots=True)
class EncodedBatch:
    """CSR rows: indptr int64, indices int32, data float64 or None when all are 1.

    unseen   {column: number of values without a category in the recipe}; unfit: not of its type
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    unseen: Counter[str] = field(default_factory=Counter)
    unfit: Counter[str] = field(default_factory=Counter)


class Encoder:
    """Encodes batches as rows. `learn`: unknown categories get new features, at most `most`; batches must come in order.

    Otherwise categories are those of the recipe, or hashed, and several threads may encode batches at once.
    """

    def __init__(self, recipe: Recipe, *, learn: bool = False, most: int = 0, room: int | None = None) -> None:
        assert recipe.table is not None
        self.recipe, self.table = recipe, recipe.table
        self.learns = learn and recipe.hash_bits is None
        numeric = [column for column in self.table.columns if column.role == NUMERIC]
        self._key = {column.name: self.table.key(column.name) for column in self.table.columns}
        names = recipe.names or [self._key[column.name] for column in numeric]
        self.keys = Keys(names, bits=recipe.hash_bits, most=max(most, len(numeric)) if learn else 0, room=room)
        fixed = sorted((self.keys.of(self._key[column.name]), at) for at, column in enumerate(numeric))
        if fixed and fixed[0][0] < 0:
            raise BadInputError(f"the recipe is damaged: column {numeric[fixed[0][1]].name!r} is not among its names")
        self._numeric = [numeric[at] for _, at in fixed]
        self._fixed = np.array([feature for feature, _ in fixed], np.int32)
        self._centres = np.array([column.centre for column in self._numeric]).reshape(-1, 1)
        self._spreads = np.array([column.spread for column in self._numeric]).reshape(-1, 1)
        self._crossed = frozenset(name for cross in self.table.crosses for name in cross)
        self._texts = [column for column in self.table.columns if column.role == TEXT]
        self._idf = [_idf(recipe, column) for column in self._texts if column.documents]

    @property
    def columns(self) -> list[str]:
        """The columns it needs."""
        return [column.name for column in self.table.columns]

    @property
    def n_features(self) -> int | None:
        """None while features are learned."""
        return None if self.learns else len(self.keys)

    def names(self) -> tuple[str, ...] | None:
        """Names of the features, None when they are hashed."""
        return None if self.recipe.hash_bits is not None else self.keys.names()

    def features(self, column: KeyColumn) -> np.ndarray:
        """int32: the feature of each of its words."""
        words = column.words
        return self.keys.find(words.words, column.prefix) if words.features is None else words.features

    def vocabulary(self, column: TableColumn, dtype: pa.DataType, count: int) -> Vocabulary | None:
        """The words of a column that are looked up as they are, if there are few enough for `count` words of a batch."""
        if self.learns or self.keys.bits is not None or len(self.keys) > _TIMES * count or not self.plain(column, dtype):
            return None
        return self._vocabularies.get(self.prefix(column))

    def plain(self, column: TableColumn, dtype: pa.DataType) -> bool:
        """Whether values of this type are the words of a column as they are, and of it alone."""
        return dtype in _PLAIN and (column.type or TEXT) == TEXT and column.name not in self._crossed

    @cached_property
    def _vocabularies(self) -> dict[str, Vocabulary]:
        return self.keys.vocabularies(any(column.bare for column in self._texts))

    def prefix(self, column: TableColumn) -> str:
        """What keys of its words begin with."""
        return "" if column.bare else f"{self._key[column.name]}="

    def encode(self, batch: pa.RecordBatch, place: Place) -> EncodedBatch:
        """The rows of `batch`. Raises BadInputError naming the file, the row and the column."""
        return _Batch(self, batch, place).encoded()


class _Batch:
    """The encoding of one batch."""

    def __init__(self, encoder: Encoder, batch: pa.RecordBatch, place: Place) -> None:
        self.encoder, self.batch, self.place, self.n = encoder, batch, place, batch.num_rows
        self.strict, self.indicators = encoder.table.missing == "error", encoder.table.missing == "own"
        self.words: dict[str, Words] = {}
        self.unseen: Counter[str] = Counter()
        self.unfit: Counter[str] = Counter()

    def encoded(self) -> EncodedBatch:
        encoder = self.encoder
        values = np.empty((len(encoder._numeric), self.n))
        columns, texts = self._categories(values), [self._runs(column) for column in encoder._texts]
        prefixes = list(map(encoder.prefix, encoder._texts))
        keys, hashes = list(columns), encoder.keys.bits is not None
        if not hashes:  # hashing all words takes less time than finding the distinct ones
            for column, prefix, runs in zip(encoder._texts, prefixes, texts, strict=True):
                text = words_from(*runs[1:])
                vocabulary = encoder.vocabulary(column, text.type, len(text))
                words = Words(*coded(text)) if vocabulary is None else vocabulary.words_of(text)
                keys.append(KeyColumn(prefix, words, column.name, np.repeat(np.arange(self.n), np.diff(runs.ends))))
        tables = encoder.keys.learn(keys, self.place.file) if encoder.learns else list(map(encoder.features, keys))
        by_key = [np.concatenate((table, _NOTHING))[key.words.codes] for key, table in zip(keys, tables, strict=True)]
        features, of_texts = np.array(by_key[: len(columns)], np.int32).reshape(len(columns), self.n), by_key[len(columns) :]
        if features.min(initial=0) == UNSEEN:
            for category, unseen in zip(columns, np.count_nonzero(features == UNSEEN, axis=1).tolist(), strict=True):
                self.unseen[category.name] += unseen
        if hashes:
            of_texts = [encoder.keys.hashed(*runs[1:], prefix) for runs, prefix in zip(texts, prefixes, strict=True)]
        elif not encoder.learns:  # texts that have words, all of them unknown
            for column, runs, feature in zip(encoder._texts, texts, of_texts, strict=True):
                seen = np.concatenate(([0], np.cumsum(feature >= 0)))[runs.ends]
                if unknown := int(np.count_nonzero((np.diff(runs.ends) > 0) & (np.diff(seen) == 0))):
                    self.unseen[column.name] = unknown
        ends, words_of_rows = _by_rows([runs.ends for runs in texts], of_texts, self.n)
        room = features.size + values.size + len(words_of_rows)
        indptr, indices, data = np.empty(self.n + 1, np.int64), np.empty(room, np.int32), np.empty(room)
        line = np.empty(len(features) + int(np.diff(ends).max(initial=0)), np.int32)
        ones = k.assemble(encoder._fixed, values, features, ends, words_of_rows, line, indptr, indices, data)
        for idf in encoder._idf:
            k.tfidf(indptr, indices, idf, data)
        nnz, ones = int(indptr[-1]), ones and not encoder._idf
        return EncodedBatch(indptr, indices[:nnz].copy(), None if ones else data[:nnz].copy(), self.unseen, self.unfit)

    def _categories(self, values: np.ndarray) -> list[KeyColumn]:
        """What can give a row a feature of value 1, in the order of keys within a row; `values` receives those of numbers."""
        table, columns = self.encoder.table, list[KeyColumn]()
        missing = self._take_numbers(values)

        def add(name: str, prefix: str, words: Words, absent: str = "") -> None:
            columns.append(KeyColumn(prefix, words, name))
            if absent and (lacking := words.codes < 0).any():
                columns.append(_absent(name, absent, lacking))

        for column in table.columns:
            key, name = self.encoder._key[column.name], column.name
            absent = f"{key}{ABSENT}" if self.indicators else ""
            if column.role == NUMERIC:
                if self.indicators and name in missing:
                    columns.append(_absent(name, absent, missing[name]))
            elif column.role == TIME:
                times = self._times(column)
                for part in column.parts:
                    words = self._checked(name, said(self.place, name, partial(part_of_time, times, part)))
                    add(name, f"{key}.{part}=", words, absent)
            elif column.role != TEXT:
                add(name, f"{key}=", self._category(column), absent)
        roles = {column.name: column for column in table.columns}
        for cross in table.crosses:
            words = escaped(self._category(roles[cross[0]]))
            for name in cross[1:]:
                words = _crossed(words, escaped(self._category(roles[name])))
            add(cross[0], "*".join(map(table.key, cross)) + "=", words)
        return columns

    def _column(self, name: str) -> pa.Array:
        column = self.batch.column(name)
        if self.strict and column.null_count:
            raise BadInputError(f"{self.place(column.is_null().index(True).as_py())}, column {name!r}: {_NO_VALUE}")
        return column

    def _numbers(self, column: TableColumn) -> np.ndarray:
        """float64, nan where a value is missing. Raises BadInputError for infinities, and for nan where that is an error."""
        values = said(self.place, column.name, partial(numbers_of, self._column(column.name)))
        if self.strict and np.isnan(values).any():
            raise BadInputError(f"{self.place(int(np.argmax(np.isnan(values))))}, column {column.name!r}: the value is nan")
        return values

    def _take_numbers(self, out: np.ndarray) -> dict[str, np.ndarray]:
        """Write the values of numeric columns, 0 if missing; returns {column: which rows lack a value} of those that do."""
        encoder, names = self.encoder, [column.name for column in self.encoder._numeric]
        if self.strict:
            values = np.array([self._numbers(column) for column in encoder._numeric]).reshape(out.shape)
        else:
            values = numbers_together(self.place, self.batch, names)
        np.divide(values - encoder._centres, encoder._spreads, out=out)
        lacking = np.isnan(out)
        if not lacking.any():
            return {}
        out[lacking] = 0.0
        return {name: rows for name, rows in zip(names, lacking, strict=True) if rows.any()}

    def _category(self, column: TableColumn) -> Words:
        name = column.name
        if name in self.words:
            return self.words[name]
        if column.role == BINNED:  # a bin includes its lower edge
            values = self._numbers(column)
            codes = np.searchsorted(np.array(column.edges), values, side="right").astype(np.int32)
            codes[np.isnan(values)] = -1
            words = Words(codes, pa.array(interval_names(column.edges), pa.large_string()))
        elif (known := self.encoder.vocabulary(column, (values := self._column(name)).type, self.n)) is not None:
            words = self._checked(name, known.words_of(values))
        elif self.encoder.keys.bits is not None and self.encoder.plain(column, values.type):
            words = self._checked(name, Words.spelled(np.arange(self.n, dtype=np.int32), values))  # as in `encoded`: all hashed
        else:
            words, unfit = said(self.place, name, partial(words_of, values, column.type or TEXT))
            self._checked(name, words)
            if unfit:
                self.unfit[name] = unfit
        self.words[name] = words
        return words

    def _times(self, column: TableColumn) -> pa.Array:
        times, lost = said(self.place, column.name, partial(times_of, self._column(column.name)))
        if lost.any():
            self.unfit[column.name] = int(lost.sum())
        return times

    def _checked(self, name: str, words: Words) -> Words:
        """`words`; raises for missing ones where that is an error."""
        if self.strict and (words.codes < 0).any():
            raise BadInputError(f"{self.place(int(np.argmax(words.codes < 0)))}, column {name!r}: {_NO_VALUE}")
        return words

    def _runs(self, column: TableColumn) -> Runs:
        return said(self.place, column.name, partial(words_of_texts, self._column(column.name), column))


def _absent(name: str, key: str, missing: np.ndarray) -> KeyColumn:
    """The key of a missing value of a column, in the rows where it is."""
    return KeyColumn("", Words(np.where(missing, np.int32(0), np.int32(-1)), pa.array([key], pa.large_string())), name)


def _crossed(first: Words, second: Words) -> Words:
    """The pairs of two columns, missing if either is; a word is made for each pair that occurs."""
    width = max(len(second.words), 1)
    both = (first.codes >= 0) & (second.codes >= 0)
    pairs = pa.array(first.codes.astype(np.int64) * width + second.codes, mask=~both)
    codes, distinct = coded(pairs)
    parts = zip((first, second), np.divmod(distinct.to_numpy(), width), strict=True)
    pair = [part.words.take(pa.array(at)).cast(pa.large_string()) for part, at in parts]
    return Words(codes, pc.binary_join_element_wise(*pair, pa.scalar("*", pa.large_string())))


def _by_rows(all_ends: list[np.ndarray], features: list[np.ndarray], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(ends, features of the words) of all columns of texts together."""
    if not features:
        return np.zeros(rows + 1, np.int64), _NOTHING[:0]
    if len(features) == 1:
        return all_ends[0], features[0]
    lengths = [np.diff(ends) for ends in all_ends]
    row_of = np.concatenate([np.repeat(np.arange(rows), length) for length in lengths])
    ends = np.concatenate(([0], np.cumsum(np.sum(lengths, axis=0))))
    return ends, np.concatenate(features)[np.argsort(row_of, kind="stable")]


def _idf(recipe: Recipe, column: TableColumn) -> np.ndarray:
    """The idf weight of each feature that is a word of a text, float64 (features)."""
    idf = np.zeros(len(recipe.names or ()))
    frequencies = np.array(column.frequencies, dtype=np.float64)
    idf[recipe.words_of(column)] = 1.0 + np.log((1.0 + column.documents) / (1.0 + frequencies))
    return idf


def interval_names(edges: tuple[float, ...]) -> list[str]:
    """`<20`, `[20,30)`, `>=30` for edges 20 and 30."""
    bounds = [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in edges]
    if not bounds:
        return ["any"]
    return [f"<{bounds[0]}", *(f"[{low},{high})" for low, high in pairwise(bounds)), f">={bounds[-1]}"]
