"""Keys (`site=games`) and their features: a dictionary that may grow, or MurmurHash3 as in scikit-learn's FeatureHasher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.units import format_bytes
from streamcut.io.tables import kernels as k
from streamcut.io.tables.arrow import codes_of

UNSEEN, NONE = -2, -1  # no feature: a key that the dictionary lacks; nothing there
_KEY_BYTES = 240  # at most: a growing dict with its strings and numbers, the names, the recipe
_TEXT_BYTES = 6  # of memory per byte of a key: two in the dictionary, and JSON has up to six for two
_NO_ROWS = np.empty(0, np.int64)


class Words(NamedTuple):
    """A column of a batch: `codes` int32 (rows), the word of each row (-1: missing), and `words`, texts without nulls.

    Words may occur more than once, or in no row. `features`, int32, are those of the words and of one code more, which stands
    for all unknown words, where words were looked up already.
    """

    codes: np.ndarray
    words: pa.Array
    features: np.ndarray | None = None

    @classmethod
    def spelled(cls, codes: np.ndarray, words: pa.Array) -> Words:
        """Words of which the empty ones are missing."""
        words = pc.fill_null(words, "") if words.null_count else words
        empty = np.diff(k.bytes_of(words)[1]) == 0
        if empty.any():
            codes = np.where((codes >= 0) & empty[codes], np.int32(-1), codes)
        return cls(codes, words)


class KeyColumn(NamedTuple):
    """Words to look up as keys, prefix + word; `rows` int64: the row of each code, if not its own number (else empty).

    name   of the column of a table, for messages
    """

    prefix: str
    words: Words
    name: str = ""
    rows: np.ndarray = _NO_ROWS


def coded(column: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """(codes, int32, -1 for null; the distinct values) of a column. Raises ColumnTypeError for codes out of range."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
        indices = pc.fill_null(column.indices, -1) if column.null_count else column.indices
        return indices.to_numpy(zero_copy_only=False), column.dictionary
    codes, distinct = codes_of(column, -1), column.dictionary
    if distinct.null_count:
        null = distinct.is_null().to_numpy(zero_copy_only=False)
        codes = np.where((codes >= 0) & null[codes], np.int32(-1), codes)
    return codes, distinct


class Vocabulary:
    """The words of a column that have features: `words` without empty ones, `features` (int32, of each)."""

    def __init__(self, words: Sequence[str], features: Sequence[int]) -> None:
        self._words = pa.array(words, pa.string())
        self._features = np.array([*features, UNSEEN], np.int32)
        self._lookup = {
            dtype: pc.SetLookupOptions(self._words.cast(dtype), skip_nulls=True) for dtype in (pa.string(), pa.large_string())
        }

    def __len__(self) -> int:
        return len(self._words)

    def words_of(self, column: pa.Array) -> Words:
        """The words of a column of texts (string or large_string)."""
        codes = pc.index_in(column, options=self._lookup[column.type])
        if not codes.null_count:
            return Words(codes.to_numpy(), self._words, self._features)
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        return Words(np.where(lengths == 0, np.int32(-1), pc.fill_null(codes, len(self)).to_numpy()), self._words, self._features)


class Keys:
    """The features of keys. bits: they are hashed; else `names` have features, and up to `most` keys may be learned.

    room   memory for them in bytes, None: any
    """

    def __init__(self, names: Iterable[str] = (), *, bits: int | None = None, most: int = 0, room: int | None = None) -> None:
        self.bits, self._most, self.room, self._text = bits, most, room, 0
        self._features = {name: feature for feature, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._features) if self.bits is None else 1 << self.bits

    def names(self) -> tuple[str, ...]:
        """The keys in the order of their features."""
        return tuple(self._features)

    def vocabularies(self, bare: bool) -> dict[str, Vocabulary]:
        """By the part of keys up to their first `=`, or `bare` words. Those with words that Arrow cannot hold are left out."""
        words: dict[str, dict[str, int]] = {}
        for key, feature in self._features.items():
            prefix, equals, word = ("", "", key) if bare else key.partition("=")
            if word:
                words.setdefault(prefix + equals, {})[word] = feature
        made: dict[str, Vocabulary] = {}
        for prefix, of in words.items():
            with suppress(UnicodeEncodeError):
                made[prefix] = Vocabulary(list(of), list(of.values()))
        return made

    def of(self, key: str) -> int:
        """The feature of one key, UNSEEN if there is none."""
        if self.bits is None:
            return self._features.get(key, UNSEEN)
        return int(k.bucket(k.murmur(np.frombuffer(key.encode(), np.uint8)), (1 << self.bits) - 1))

    def find(self, words: pa.Array, prefix: str = "") -> np.ndarray:
        """int32: the feature of each prefix + word, UNSEEN if there is none. Thread-safe."""
        if self.bits is None:
            texts = k.texts_of(words)
            keys = map(prefix.__add__, texts) if prefix else texts
            return np.fromiter(map(self._features.get, keys, repeat(UNSEEN)), np.int32, len(words))
        data, offsets = k.bytes_of(words)
        return self.hashed(data, offsets[:-1], offsets[1:], prefix)

    def hashed(self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray, prefix: str) -> np.ndarray:
        """As `find`, of the words data[starts[i]:stops[i]] (uint8, int64), where keys are hashed."""
        assert self.bits is not None
        out = np.empty(len(starts), np.int32)
        k.hashed(data, starts, stops, np.frombuffer(prefix.encode(), np.uint8), (1 << self.bits) - 1, out)
        return out

    def learn(self, columns: Sequence[KeyColumn], where: str) -> list[np.ndarray]:
        """As `find` for each column of a batch, once unknown keys have features, by row, column and position in the row.

        So the features do not depend on how rows were cut into batches. Raises BadInputError for too many keys, MemoryBudgetError
        for keys that take too much memory, on the file `where` and (of too many) on the first column that has them.
        """
        features = [self.find(column.words.words, column.prefix) for column in columns]
        new: list[tuple[int, int, int, int, str]] = []
        for number, column in enumerate(columns):
            unseen = features[number] == UNSEEN
            if unseen.any():
                first, codes = np.full(len(unseen), -1, np.int64), column.words.codes
                occurring = np.flatnonzero(codes >= 0)[::-1]
                first[codes[occurring]] = occurring  # of the rows with a word, the first one is written last
                lacking = np.flatnonzero(unseen & (first >= 0))
                first = first[lacking]
                rows = (column.rows[first] if len(column.rows) else first).tolist()
                texts = k.texts_of(column.words.words.take(pa.array(lacking)))
                new += zip(rows, repeat(number), first.tolist(), lacking.tolist(), texts, strict=False)
        for _, number, _, word, text in sorted(new):
            key = columns[number].prefix + text
            feature = self._features.setdefault(key, len(self._features))
            if feature == len(self._features) - 1:
                if feature >= self._most:
                    name = columns[number].name
                    reached = f", reached in column {name!r}" if name else ""
                    raise BadInputError(
                        f"{where}: more than {self._most:,} different categories, words or names of features (--max-categories)"
                        f"{reached}; hash them with --hash-bits=22, or raise --max-categories"
                    )
                self._text += len(key)
            features[number][word] = feature
        if self.room is not None and new and _KEY_BYTES * len(self) + _TEXT_BYTES * self._text > self.room:
            raise MemoryBudgetError(
                f"{where}: the dictionary of categories and words is too large: --memory leaves {format_bytes(self.room)} for "
                "it; raise --memory, or hash them with --hash-bits=22"
            )
        return features
