"""A dictionary of keys that grows: the features of categories and words, numbered in the order in which rows first have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamcut.io.tables import word_kernels as k
from streamcut.io.tables.words import listed

KEY_BYTES = 192  # of a key: in the dictionary, and its name in the recipe when it is written
_NO_BYTES = np.empty(0, np.uint8)
_NO_ROWS = np.empty(0, np.int64)


class TooManyKeysError(Exception):
    """More different keys than the dictionary may have."""


class KeyDictionary:
    """Keys (UTF-8) and their features.

    Within a batch of rows columns are worked off one after the other, so keys come in another order than rows have them;
    `number` puts that right at its end. Then the features don't depend on how rows were cut into batches.
    """

    def __init__(self, keys: Iterable[str] = (), *, most: int) -> None:
        self.most = most
        self._state = np.zeros(k.STATE, np.int64)
        self._columns: list[tuple[int, int]] = []  # (column, keys before it came) of this batch
        self._features = np.empty(1 << 10, np.int64)
        self._table = _table(1 << 10, 1 << 16)
        self._numbered = 0
        given = listed(list(keys))
        self.learn(0, given, _NO_BYTES, _NO_BYTES, _NO_ROWS, 0, np.empty(len(given.starts), np.int32))
        self.number()

    def __len__(self) -> int:
        return int(self._state[k.KEYS])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._table) + self._features.nbytes

    def names(self) -> tuple[str, ...]:
        """The keys in the order of their features; all are numbered."""
        ends, text = self._table.ends.tolist(), self._table.arena[: self._state[k.ARENA]].tobytes()
        by_feature = np.argsort(self._features[: len(self)], kind="stable")
        return tuple(text[ends[key] : ends[key + 1]].decode("utf-8", "surrogateescape") for key in by_feature.tolist())

    def find(self, words: k.Words, prefix: np.ndarray, absent: np.ndarray, out: np.ndarray) -> int:
        """The key of each row's word into `out`; returns how many rows have a word that is unknown.

        Several threads may call it at once.
        """
        state = self._state.copy()
        state[k.ROW] = state[k.UNSEEN_ROWS] = 0
        k.keys_of(words, prefix, absent, False, self._table, self.most, _NO_ROWS, 0, k.not_yet(words), state, out)
        return int(state[k.UNSEEN_ROWS])

    def learn(
        self,
        column: int,
        words: k.Words,
        prefix: np.ndarray,
        absent: np.ndarray,
        rows: np.ndarray,
        first_row: int,
        out: np.ndarray,
    ) -> None:
        """The key of each row's word into `out`, for `features`; unknown words become keys.

        column, rows   in which order columns of one row come; the row of each word as `keys_of` takes it

        Raises TooManyKeysError.
        """
        self._columns.append((column, len(self)))
        state, seen = self._state, k.not_yet(words)
        state[k.ROW] = 0
        while True:
            ended = k.keys_of(words, prefix, absent, True, self._table, self.most, rows, first_row, seen, state, out)
            if ended == k.DONE:
                return
            if ended == k.TOO_MANY:
                raise TooManyKeysError
            self._grow()

    def number(self) -> None:
        """Number the keys that are new since the last call, by their row, column and place in the row."""
        first, last = self._numbered, len(self)
        if last > len(self._features):
            self._features = np.append(self._features, np.empty(max(last, 2 * first) - len(self._features), np.int64))
        column = np.empty(last - first, np.int64)
        starts = [*(start - first for _, start in self._columns), last - first]
        for (number, _), start, stop in zip(self._columns, starts[:-1], starts[1:], strict=True):
            column[start:stop] = number
        order = np.lexsort((column, self._table.rows[first:last]))
        self._features[first + order] = np.arange(first, last)
        self._columns, self._numbered = [], last

    def renumber(self, keys: np.ndarray) -> None:
        """Replace key numbers (int32, contiguous, in place), all of which are numbered, by features; negative ones stay."""
        k.renumber(keys.reshape(-1), self._features)

    def _grow(self) -> None:
        old, keys, used = self._table, len(self), int(self._state[k.ARENA])
        larger = _table(2 * (len(old.ends) - 1), max(2 * len(old.arena), used + (1 << 20)))
        larger.hashes[:keys], larger.rows[:keys] = old.hashes[:keys], old.rows[:keys]
        larger.ends[: keys + 1], larger.arena[:used] = old.ends[: keys + 1], old.arena[:used]
        k.rehash(larger, keys)
        self._table = larger


def _table(keys: int, arena: int) -> k.Dictionary:
    """An empty one with capacity for a number of keys and bytes."""
    slots = 1 << (2 * keys + 1).bit_length()
    return k.Dictionary(
        np.zeros(slots, np.int32),
        np.empty(keys, np.uint32),
        np.zeros(keys + 1, np.int64),
        np.empty(keys, np.int64),
        np.empty(arena, np.uint8),
    )
