"""Encodes a batch of a table as rows of features by the recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streamcut.errors import BadInputError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import BINNED, NUMERIC, TEXT, Column
from streamcut.io.tables import row_kernels, text_words
from streamcut.io.tables import word_kernels as k
from streamcut.io.tables.arrow import ColumnTypeError, ValueOfRowError, floats_of, floats_together, not_finite, numbers_of
from streamcut.io.tables.dictionary import KeyCounter, KeyDictionary, TooManyKeysError
from streamcut.io.tables.slots import Slot, slots_of
from streamcut.io.tables.text_words import Scratch
from streamcut.io.tables.times import part_of_time, times_of
from streamcut.io.tables.values import escaped, words_of
from streamcut.io.tables.words import NO_CODES, listed, utf8

T = TypeVar("T")
_NO_KEY = np.empty(0, np.uint8)
_MOST_LANES = 256  # rows of more features use a comparison sort: a network would have too many exchanges
_NOWHERE = KeyDictionary(most=0)  # for hashing, which uses no dictionary


@dataclass(frozen=True, slots=True)
class Place:
    """The origin of a batch's rows: row i is row `rows[i]` of `file`, and row `first_row` + i overall."""

    file: str
    rows: np.ndarray
    first_row: int

    def __call__(self, row: int) -> str:
        return f"{self.file}: row {int(self.rows[row])} (0-based)"


@dataclass(slots=True)
class Encoded:
    """CSR rows: indptr int64, indices int32, data float64 or None when all are 1.

    unseen   {column: number of values without a category in the recipe}
    unfit    {column: number of values not of its type}
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
        self.recipe, self.table, self._learn, self._most = recipe, recipe.table, learn, most
        self._mask = 0 if recipe.hash_bits is None else (1 << recipe.hash_bits) - 1
        numeric = [column.name for column in self.table.columns if column.role == NUMERIC]
        keys = recipe.names or [self.table.key(name) for name in numeric]
        self._scratch = Scratch()
        self._columns = {column.name: column for column in self.table.columns}
        self._dictionary: KeyDictionary = _NOWHERE
        self._keys: KeyDictionary | KeyCounter
        if recipe.hash_bits is None:
            self._dictionary = KeyDictionary(keys, most=max(most, len(numeric)) if learn else len(keys), room=room)
        self._keys = self._dictionary
        features = self._features([self.table.key(name) for name in numeric])
        self._slots = slots_of(self.table, dict(zip(numeric, features, strict=True)))
        self._numeric = [slot for slot in self._slots if slot.feature >= 0]
        self._others = [slot for slot in self._slots if slot.feature < 0]
        self._centres = np.array([slot.column.centre for slot in self._numeric])
        self._spreads = np.array([slot.column.spread for slot in self._numeric])
        self._fixed = np.array([slot.feature for slot in self._numeric], np.int32)
        indicators = len(self._numeric) if self.table.missing == "own" else 0
        lanes = indicators + len(self._others)
        self._idf = {column.name: _idf(recipe, column) for column in self.table.columns if column.documents}
        self._network = row_kernels.sorting_network(lanes if lanes <= _MOST_LANES else 0)

    @property
    def columns(self) -> list[str]:
        """The columns it needs."""
        return [column.name for column in self.table.columns]

    @property
    def n_features(self) -> int | None:
        """None while features are learned."""
        if self._learn:
            return None
        return len(self._dictionary) if self.recipe.hash_bits is None else self._mask + 1

    def names(self) -> tuple[str, ...] | None:
        """Names of the features, None when they are hashed."""
        return None if self.recipe.hash_bits is not None else self._dictionary.names()

    def count_keys(self) -> KeyCounter:
        """Drop the dictionary: from now on keys are counted, and rows lack their features."""
        self._dictionary, self._keys = _NOWHERE, KeyCounter()
        return self._keys

    def encode(self, batch: pa.RecordBatch, place: Place) -> Encoded:
        """The rows of `batch`. Raises BadInputError naming the file, the row and the column."""
        return _Batch(self, batch, place).encoded()

    def _features(self, keys: list[str]) -> list[int]:
        if self.recipe.hash_bits is not None:
            return [int(k.bucket(k.murmur(utf8(key)), self._mask)) for key in keys]
        out = np.empty(len(keys), np.int32)
        self._dictionary.find(listed(keys), _NO_KEY, _NO_KEY, out)
        return out.tolist()


class _Batch:
    """The encoding of one batch."""

    def __init__(self, encoder: Encoder, batch: pa.RecordBatch, place: Place) -> None:
        self.encoder, self.batch, self.place = encoder, batch, place
        self.n = batch.num_rows
        self.words: dict[str, k.Words] = {}
        self.escaped: dict[str, k.Words] = {}
        self.times: dict[str, pa.Array] = {}
        self.unseen: Counter[str] = Counter()
        self.unfit: Counter[str] = Counter()

    def encoded(self) -> Encoded:
        encoder, n = self.encoder, self.n
        own = len(encoder._numeric) if encoder.table.missing == "own" else 0
        scratch = encoder._scratch
        values = scratch.array("values", (len(encoder._numeric), n), np.float64)
        features = scratch.array("features", (own + len(encoder._others), n), np.int32)
        features[:own] = k.NOTHING
        for at in self._odd_numbers(values):
            slot = encoder._numeric[at]
            codes = features[at] if own else scratch.array("codes", n, np.int32)
            if self._take_numbers(slot.column, values[at], codes) and own:
                self._look_up(slot, k.Words(_NO_KEY, _ZERO, _ZERO, codes, False), codes)
        for slot, out in zip(encoder._others, features[own:], strict=True):
            self._look_up(slot, self._words_of(slot), out)
        texts = [
            self._text(number, column)
            for number, column in enumerate(encoder.table.columns, len(encoder._slots))
            if column.role == TEXT
        ]
        if encoder._learn:
            encoder._keys.number()
            encoder._keys.renumber(features)
        return self._rows(features, values, texts)

    def _rows(self, features: np.ndarray, values: np.ndarray, texts: list[Callable[[], text_words.Rows]]) -> Encoded:
        encoder, size = self.encoder, features.size + values.size
        indptr = np.empty(self.n + 1, np.int64)
        indices, data = encoder._scratch.array("indices", size, np.int32), encoder._scratch.array("data", size, np.float64)
        if len(features) > _MOST_LANES:
            features.view(np.uint32).sort(axis=0)
        ones = row_kernels.assemble(encoder._fixed, values, features.view(np.uint32), encoder._network, indptr, indices, data)
        for text in texts:
            *more, more_ones = text()
            if indptr[-1] == 0:
                (indptr, indices, data), ones = more, more_ones
                continue
            before = (indptr, indices), data
            indptr, indices, data = _room(self.n, int(indptr[-1]) + int(more[0][-1]))
            ones = row_kernels.merge_rows(*before, (more[0], more[1]), more[2], indptr, indices, data)
        nnz = int(indptr[-1])
        return Encoded(indptr, indices[:nnz].copy(), None if ones else data[:nnz].copy(), self.unseen, self.unfit)

    def _column(self, name: str) -> pa.Array:
        column = self.batch.column(name)
        if self.encoder.table.missing == "error" and column.null_count:
            row = column.is_null().index(True).as_py()
            raise BadInputError(f"{self.place(row)}, column {name!r}: {_NO_VALUE}")
        return column

    def _numbers(self, column: Column) -> np.ndarray:
        values = self._said(column.name, lambda: numbers_of(self._column(column.name)))
        if self.encoder.table.missing == "error" and np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise BadInputError(f"{self.place(row)}, column {column.name!r}: the value is nan")
        return values

    def _odd_numbers(self, values: np.ndarray) -> list[int]:
        """Write the values of plain numeric columns; returns the numbers of the others, for `_take_numbers`."""
        encoder = self.encoder
        given = floats_together(self.batch, [slot.column.name for slot in encoder._numeric])
        if given is None:
            return list(range(len(values)))
        odd = np.empty(len(values), np.bool_)
        row_kernels.plain_numbers(given, encoder._centres, encoder._spreads, values, odd)
        return np.flatnonzero(odd).tolist()

    def _take_numbers(self, column: Column, values: np.ndarray, codes: np.ndarray) -> bool:
        """Write the values of a numeric column, 0 if missing, marked in `codes`; returns whether any is missing."""
        given = self._said(column.name, lambda: floats_of(self._column(column.name)))
        endless, missing = row_kernels.numbers(given, values, codes)
        if endless >= 0:
            raise BadInputError(f"{self.place(endless)}, column {column.name!r}: {not_finite(given[endless])}")
        if missing >= 0 and self.encoder.table.missing == "error":
            raise BadInputError(f"{self.place(missing)}, column {column.name!r}: the value is nan")
        if column.weighed:
            row_kernels.standardise(values, codes, column.centre, column.spread)
        return missing >= 0

    def _words_of(self, slot: Slot) -> k.Words:
        if slot.cross:
            words = self._part_of_cross(slot.cross[0])
            for name in slot.cross[1:]:
                words = self._crossed(words, self._part_of_cross(name))
            return words
        if slot.part:
            name = slot.column.name
            times = self._times(slot.column)
            return self._given(name, self._said(name, lambda: part_of_time(times, slot.part)))
        return self._category(slot.column.name)

    def _category(self, name: str) -> k.Words:
        if name not in self.words:
            column = self.encoder._columns[name]
            if column.role == BINNED:
                self.words[name] = _bins(column, self._numbers(column))
            else:
                words, unfit = self._said(name, lambda: words_of(self._column(name), column.type))
                self.words[name] = self._given(name, words)
                if unfit:
                    self.unfit[name] = unfit
        return self.words[name]

    def _times(self, column: Column) -> pa.Array:
        """The times of a column; with older recipes they keep their zones."""
        name = column.name
        if name not in self.times:
            local = column.type is None
            self.times[name], lost = self._said(name, lambda: times_of(self._column(name), local=local))
            if lost.any():
                self.unfit[name] = int(lost.sum())
        return self.times[name]

    def _part_of_cross(self, name: str) -> k.Words:
        """The values of a column as spelled in crosses; older recipes escape nothing."""
        if not self.encoder.table.typed:
            return self._category(name)
        if name not in self.escaped:
            self.escaped[name] = escaped(self._category(name))
        return self.escaped[name]

    def _given(self, name: str, words: k.Words) -> k.Words:
        """`words`; raises for missing ones where that is an error. In text a missing value is an empty one."""
        if self.encoder.table.missing == "error":
            empty = words.stops == words.starts
            missing = empty if words.direct else (words.codes < 0) | empty[words.codes]
            if missing.any():
                raise BadInputError(f"{self.place(int(np.argmax(missing)))}, column {name!r}: {_NO_VALUE}")
        return words

    def _crossed(self, first: k.Words, second: k.Words) -> k.Words:
        size = k.word_bytes(first, self.n) + k.word_bytes(second, self.n) + self.n * len(_STAR)
        starts, stops, data = np.empty(self.n, np.int64), np.empty(self.n, np.int64), np.empty(size, np.uint8)
        k.crossed(first, second, _STAR, starts, stops, data)
        return k.Words(data, starts, stops, NO_CODES, True)

    def _text(self, number: int, column: Column) -> Callable[[], text_words.Rows]:
        """A function that returns the rows of a column of texts once new words have features; (…, whether all values are 1)."""
        encoder = self.encoder
        texts = self._said(column.name, lambda: text_words.texts_of(self._column(column.name)))
        prefix = _NO_KEY if column.bare else utf8(f"{encoder.table.key(column.name)}=")
        if encoder.recipe.hash_bits is not None and not column.characters:
            return lambda: text_words.hashed_rows(texts, column, prefix, encoder._mask, encoder._scratch)
        ends, rows, words = text_words.words_of_texts(texts, column)
        found = np.empty(len(words.starts), np.int32)
        self._find(number, column.name, words, prefix, _NO_KEY, rows, found)
        if not encoder._learn and encoder.recipe.hash_bits is None:
            self._count_unknown(column.name, ends, found)

        def counted() -> text_words.Rows:
            if encoder._learn:
                encoder._keys.renumber(found)
            out = _room(self.n, len(found))
            ones = row_kernels.count_words(ends, found, *out)
            if column.documents:
                row_kernels.tfidf(out[0], out[1], encoder._idf[column.name], out[2])
            return *out, ones and not column.documents

        return counted

    def _count_unknown(self, name: str, ends: np.ndarray, found: np.ndarray) -> None:
        """Count the texts that have words, all of them unknown."""
        known = np.concatenate(([0], np.cumsum(found >= 0)))[ends]
        self.unseen[name] = int(np.count_nonzero((np.diff(ends) > 0) & (np.diff(known) == 0)))
        if not self.unseen[name]:
            del self.unseen[name]

    def _look_up(self, slot: Slot, words: k.Words, out: np.ndarray) -> None:
        self._find(slot.number, slot.column.name, words, slot.prefix, slot.absent, _NO_ROWS, out)

    def _find(
        self,
        number: int,
        name: str,
        words: k.Words,
        prefix: np.ndarray,
        absent: np.ndarray,
        rows: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """The feature (when learning, the key) of each row, or of each word of the texts in `rows`."""
        encoder = self.encoder
        if encoder.recipe.hash_bits is not None:
            k.hashed(words, prefix, absent, encoder._mask, k.not_yet(words), out)
        elif not encoder._learn:
            unseen = encoder._dictionary.find(words, prefix, absent, out)
            if unseen:
                self.unseen[name] += unseen
        else:
            try:
                encoder._keys.learn(number, words, prefix, absent, rows, self.place.first_row, out)
            except TooManyKeysError:
                raise BadInputError(
                    f"{self.place.file}: more than {encoder._most:,} different categories and words (--max-categories), "
                    f"reached in column {name!r}; hash them with --hash-bits=22, or raise --max-categories"
                ) from None

    def _said(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make`; its errors are raised with the place and the column."""
        try:
            return make()
        except ValueOfRowError as error:
            raise BadInputError(f"{self.place(error.row)}, column {name!r}: {error.what}") from None
        except ColumnTypeError as error:
            raise BadInputError(f"{self.place.file}: column {name!r} {error}") from None


_STAR = utf8("*")
_NO_VALUE = "no value (--missing=own gives it a feature of its own)"
_ZERO, _NO_ROWS = np.zeros(1, np.int64), np.empty(0, np.int64)


def _idf(recipe: Recipe, column: Column) -> np.ndarray:
    """The idf weight of each feature that is a word of a text, float64 (features)."""
    assert recipe.names is not None
    found = np.zeros(len(recipe.names))
    frequencies = np.array(column.frequencies, dtype=np.float64)
    found[recipe.words_of(column)] = 1.0 + np.log((1.0 + column.documents) / (1.0 + frequencies))
    return found


def _room(rows: int, entries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(rows + 1, np.int64), np.empty(entries, np.int32), np.empty(entries)


def _bins(column: Column, values: np.ndarray) -> k.Words:
    """The bin of each value, missing for nan. A bin includes its lower edge."""
    names = interval_names(column.edges)
    codes = np.searchsorted(np.array(column.edges), values, side="right").astype(np.int32)
    codes[np.isnan(values)] = k.MISSING
    return listed(names, codes)


def interval_names(edges: tuple[float, ...]) -> list[str]:
    """`<20`, `[20,30)`, `>=30` for edges 20 and 30."""
    found = [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in edges]
    if not found:
        return ["any"]
    return [f"<{found[0]}", *(f"[{low},{high})" for low, high in pairwise(found)), f">={found[-1]}"]
