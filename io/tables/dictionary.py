"""A growing dictionary of keys: the features of categories and words, numbered by their first occurrence in the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from streamcut.errors import MemoryBudgetError, given
from streamcut.foundation.systems import give_back
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.tables import word_kernels as k
from streamcut.io.tables.words import listed

_KEY_BYTES = 112  # at most: the growing dictionary, the names, the recipe
_TEXT_BYTES = (4, 6)  # per byte of a key: ASCII, or not (JSON has six for two)
_AT_ONCE = 1 << 14
_PLACES = 1 << 22  # of a KeyCounter: the error is 1/400 for 30 million keys
_ANY_HASH = (1 << 31) - 1
_WORD = 1 << 16  # bytes: most words are shorter
_NO_SLOTS = np.empty(0, np.int32)
_NO_BYTES = np.empty(0, np.uint8)
_NO_ROWS = np.empty(0, np.int64)
T = TypeVar("T")


class TooManyKeysError(Exception):
    """More different keys than the dictionary may have."""


class NoRoomForKeysError(Exception):
    """The keys need more memory than is available."""


@dataclass(frozen=True, slots=True)
class KeyRoom:
    """The bytes of memory that keys may take, and the ceiling they count towards; `limit_for`: the ceiling for a given size."""

    most: int
    limit: int
    limit_for: Callable[[int], int]

    def refusal(self, where: str, counted: KeyCounter | None) -> MemoryBudgetError:
        """The error when keys do not fit. `counted`: all keys; None if the rows can be read only once."""
        left = f"--memory: {format_bytes(self.limit)} leaves {format_bytes(self.most)} for it"
        if counted is None:
            return MemoryBudgetError(
                f"{where}: the dictionary of categories and words is too large: {left}; raise --memory, or hash them with "
                "--hash-bits=22"
            )
        keys, text = counted.keys_and_text()
        enough, bits = self.limit_for(needed_bytes(keys, text, plain=counted.plain)), min(max((4 * keys).bit_length(), 18), 28)
        return MemoryBudgetError(
            f"{where}: a dictionary of {keys:,} categories and words, {format_bytes(text)} of text, is too large: {left}; raise "
            f"it to {given('memory', format_enough(enough).replace(' ', ''))}, or hash them with {given('hash-bits', bits)}"
        )


def needed_bytes(keys: int, text: int, *, plain: bool) -> int:
    """Memory for a number of keys of `text` bytes together; `plain`: ASCII."""
    return _KEY_BYTES * keys + _TEXT_BYTES[not plain] * text


def within_room(blocks: Iterator[T], room: KeyRoom | None, where: str, counted: Callable[[], KeyCounter | None]) -> Iterator[T]:
    """The `blocks` of rows; where their keys do not fit, raises the error that names what would do. `counted`: as in refusal."""
    try:
        yield from blocks
        return
    except NoRoomForKeysError:  # keys are counted below, where no traceback keeps the batch
        pass
    assert room is not None
    give_back()
    raise room.refusal(where, counted())


class KeyDictionary:
    """Keys (UTF-8) and their features.

    A batch is processed column by column, so keys arrive in another order than in the rows; `number` corrects that at the end of
    the batch. So the features don't depend on how rows were cut into batches.

    most, room   limits on the keys and on their memory in bytes
    """

    def __init__(self, keys: Iterable[str] = (), *, most: int, room: int | None = None) -> None:
        self.most, self._room = most, math.inf  # for `keys`, which are in memory anyway
        self._names: tuple[str, ...] = ()
        self._state = np.zeros(k.STATE, np.int64)
        self._columns: list[tuple[int, int]] = []  # (column, keys before it) of this batch
        self._table = _table(1 << 10, 1 << 16)
        self._numbered, self._plain = 0, True
        given = listed(list(keys))
        self.learn(0, given, _NO_BYTES, _NO_BYTES, _NO_ROWS, 0, np.empty(len(given.starts), np.int32))
        self.number()
        if room is not None:
            self._room = room

    def __len__(self) -> int:
        return int(self._state[k.KEYS])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._table)

    def names(self) -> tuple[str, ...]:
        """The keys in the order of their features; all are numbered."""
        if len(self._names) < len(self):
            self._names = tuple(self._decoded(np.argsort(self._table.origins[: len(self)])))
        return self._names

    def _decoded(self, keys: np.ndarray) -> Iterator[str]:
        ends, text = self._table.ends, self._table.arena.data
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            for start, stop in zip(ends[some].tolist(), ends[some + 1].tolist(), strict=True):
                yield str(text[start:stop], "utf-8", "surrogateescape")

    def find(self, words: k.Words, prefix: np.ndarray, absent: np.ndarray, out: np.ndarray) -> int:
        """Write the key of each row's word to `out`; returns the number of rows with an unknown word.

        Thread-safe.
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
        """Write the key of each row's word to `out`, for `features`; unknown words become keys.

        column, rows   the order of columns within a row; the row of each word, as in `keys_of`

        Raises TooManyKeysError, NoRoomForKeysError.
        """
        self._columns.append((column, len(self)))
        state, seen = self._state, k.not_yet(words)
        state[k.ROW] = 0
        while True:
            used = int(state[k.ARENA])
            ended = k.keys_of(words, prefix, absent, True, self._table, self.most, rows, first_row, seen, state, out)
            if ended == k.TOO_MANY:
                raise TooManyKeysError
            self._plain = self._plain and _is_ascii(self._table.arena[used : state[k.ARENA]])
            if needed_bytes(len(self), int(state[k.ARENA]), plain=self._plain) > self._room:
                raise NoRoomForKeysError
            if ended == k.DONE:
                return
            self._grow()

    def number(self) -> None:
        """Number the keys added since the last call, by row, column and position in the row."""
        first, last = self._numbered, len(self)
        column, origins = np.empty(last - first, np.int64), self._table.origins[first:last]
        starts = [*(start - first for _, start in self._columns), last - first]
        for (number, _), start, stop in zip(self._columns, starts[:-1], starts[1:], strict=True):
            column[start:stop] = number
        origins[np.lexsort((column, origins))] = np.arange(first, last)
        self._columns, self._numbered = [], last

    def renumber(self, keys: np.ndarray) -> None:
        """Replace keys (int32, contiguous, in place), all of them numbered, by features; negative ones stay."""
        k.renumber(keys.reshape(-1), self._table.origins)

    def _grow(self) -> None:
        """Make what is short larger by a quarter, the slots twofold: arrays where they are, so that memory never holds a copy."""
        table, keys = self._table, len(self)
        if keys == len(table.hashes):
            for array, more in ((table.hashes, 0), (table.origins, 0), (table.ends, 1)):
                array.resize(keys + keys // 4 + more, refcheck=False)
        elif 2 * (keys + 1) > len(table.slots):
            slots = 2 * len(table.slots)
            self._table = table._replace(slots=_NO_SLOTS)  # they are free before the next are there
            self._table = table._replace(slots=np.zeros(slots, np.int32))
            k.rehash(self._table, keys)
        else:
            table.arena.resize(len(table.arena) + len(table.arena) // 4 + _WORD, refcheck=False)


class KeyCounter:
    """Replaces a KeyDictionary to estimate its final size: it records only whether a key's hash has occurred.

    The number of slots never hit gives the number of collisions (Whang, Vander-Zanden & Taylor 1990, linear counting).
    """

    def __init__(self) -> None:
        self._hit = np.zeros(_PLACES, bool)
        self._count = self._text = 0
        self.plain = True

    def keys_and_text(self) -> tuple[int, int]:
        """(keys, bytes of all keys), slightly overestimated."""
        free = max(1, _PLACES - self._count)
        keys = math.ceil(1.01 * _PLACES * math.log(_PLACES / free))
        return keys, math.ceil(self._text * keys / max(1, self._count))

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
        """Parameters of KeyDictionary; `out` is not filled."""
        k.hashed(words, prefix, absent, _ANY_HASH, k.not_yet(words), out)
        self.plain = self.plain and _is_ascii(prefix) and _is_ascii(words.data)
        for start in range(0, len(out), _AT_ONCE):  # a whole batch would take its multiple in memory
            given = start + np.flatnonzero(out[start : start + _AT_ONCE] >= 0)
            places, first = np.unique(out[given] & (_PLACES - 1), return_index=True)
            new = ~self._hit[places]
            self._hit[places[new]] = True
            word = given[first[new]]
            word = word if words.direct else words.codes[word]
            lengths = np.where(word < 0, len(absent), len(prefix) + words.stops[word] - words.starts[word])
            self._count += len(lengths)
            self._text += int(lengths.sum())
        out[:] = k.NONE

    def number(self) -> None:
        """Keys have no numbers here."""

    def renumber(self, keys: np.ndarray) -> None:
        """Keys have no numbers here."""


def _is_ascii(text: np.ndarray) -> bool:
    return int(text.max(initial=0)) < 128


def _table(keys: int, arena: int) -> k.Dictionary:
    """An empty table with capacity for a number of keys and bytes."""
    slots = 1 << (2 * keys + 1).bit_length()
    return k.Dictionary(
        np.zeros(slots, np.int32),
        np.empty(keys, np.uint32),
        np.zeros(keys + 1, np.int64),
        np.empty(keys, np.int64),
        np.empty(arena, np.uint8),
    )
