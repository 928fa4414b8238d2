"""One row cache for several trainings over the same rows: the content of each cached row is in memory once for all of them.

The rows that dual ascent may still move are much the same in all folds, and for one C and the next. Each training says which of
its rows these are, after every pass and the sweeps behind it. One of them leads: in its next pass it fills the pool with the rows
that most of them want. All sweep these as far as they have them, each with dual variables of its own. The leader is the first of
those that still train.

Trainings go through the data side by side, so they wait for each other twice in a pass: the pool is filled anew once nobody
sweeps it any more, and swept once it is full. What is in it follows from what is trained, never from how fast threads are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamcut.execution.row_cache import CacheSize
from streamcut.execution.shared_reading import Reader, SharedReading
from streamcut.io.row_view import RowView

OWN_BYTES = 32  # of a row of the pool in each training: its number, share, share before, place in the order of sweeps
MORE_BYTES = 16 - OWN_BYTES  # than a row of a cache takes: its number in the data, now and in the last round, but not the former
VOTE_BYTES = 4  # of each row of the data: how many want it, how many will, of those the leader's; and who they are, in bits
MOST_MEMBERS = 255  # votes are counted in bytes
_PIECE = 1 << 16  # rows that are looked at once


@dataclass(eq=False)
class Member:
    """A training that shares the rows of `pool`; `rows` (None: all) are its own, which it reads by `reader`."""

    pool: RowPool
    reader: Reader
    rows: RowView | None
    rounds: int = 0  # passes that it has begun to fill the pool in
    _bits: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))  # the own rows that it wants, a bit for each

    @property
    def leads(self) -> bool:
        """Whether it fills the pool in this pass."""
        return self.pool.leader is self

    @property
    def n_rows(self) -> int:
        """Its own."""
        return (self.reader if self.rows is None else self.rows).manifest.statistics.n_rows

    def want(self, first_row: int, wanted: np.ndarray) -> None:
        """Of the rows from `first_row` on those that are `wanted` (bool) are for the pool."""
        start, before = divmod(first_row, 8)
        bits = np.packbits(np.concatenate([np.zeros(before, bool), wanted]))
        self._bits[start : start + len(bits)] |= bits

    def change(self, places: np.ndarray, wanted: np.ndarray) -> None:
        """Of the own rows `places`, −1 for none, those that are `wanted` (bool) are."""
        for start in range(0, len(places), _PIECE):
            part = places[start : start + _PIECE]
            own = part >= 0
            byte, bit = part[own] >> 3, (128 >> (part[own] & 7)).astype(np.uint8)
            now = wanted[start : start + _PIECE][own]
            np.bitwise_and.at(self._bits, byte, ~bit)
            np.bitwise_or.at(self._bits, byte[now], bit[now])

    def _wanted(self, start: int, stop: int) -> np.ndarray:
        """Whether it wants the rows start:stop (bool)."""
        first = start // 8
        return np.unpackbits(self._bits[first : -(-stop // 8)])[start - 8 * first : stop - 8 * first].view(bool)

    def begin(self) -> np.ndarray | None:
        """A pass begins: wait until all are there. Returns how many others want each of the own rows, to who leads."""
        pool = self.pool
        with pool.shared.change():
            if self.rounds:
                pool.vote(self.rows, self._wanted)
            self.rounds += 1
            pool.go_on()
        pool.shared.wait(self.reader, lambda: pool.round >= self.rounds)
        votes = None
        if self.leads:
            votes = pool.votes.copy() if self.rows is None else self.rows.select(pool.votes)
            if self.rounds > 1:
                for start in range(0, len(votes), _PIECE):
                    part = votes[start : start + _PIECE]
                    part -= self._wanted(start, start + len(part))
        self._bits = np.zeros(-(-self.n_rows // 8), np.uint8)
        return votes

    def filled(self, numbers: np.ndarray) -> None:
        """The leader has seen all its rows: these are in the pool."""
        found = numbers.copy() if self.rows is None else self.rows.originals(numbers)
        with self.pool.shared.change():
            self.pool.numbers, self.pool.full = found, self.rounds

    def wait(self) -> None:
        """Until the leader has seen all its rows."""
        pool = self.pool
        pool.shared.wait(self.reader, lambda: pool.full >= self.rounds or pool.leader not in pool.members)

    def place(self, out: np.ndarray) -> int:
        """Write the own numbers of the rows in the pool, −1 for those that it does not have; returns how many they all are."""
        numbers = self.pool.numbers
        if self.rows is None:
            out[: len(numbers)] = numbers
        else:
            self.rows.place(numbers, out)
        return len(numbers)

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        """It has ended: others do not wait for it any more."""
        pool = self.pool
        with pool.shared.change():
            pool.members.remove(self)
            pool.go_on()


class RowPool:
    """Rows of at most `size`, for the trainings that `join` it before any of them runs.

    storage  arrays of its rows that all use, by whoever made them first
    numbers  int64 (n): of its rows, in the whole data
    votes    uint8 (rows of the data): how many trainings wanted each of them after the last round
    round    counts the times that it was filled; full: the last one that is done
    """

    def __init__(self, shared: SharedReading, size: CacheSize) -> None:
        self.shared, self.size = shared, size
        self.members: list[Member] = []
        self.leader: Member | None = None
        self.storage: dict[str, Any] | None = None
        self.numbers = np.empty(0, np.int64)
        self.votes, self._coming = (np.zeros(shared.data.manifest.statistics.n_rows, np.uint8) for _ in range(2))
        self.round = self.full = 0

    def join(self, reader: Reader, rows: RowView | None) -> Member:
        """A training on `rows` (None: all) by way of `reader`."""
        member = Member(self, reader, rows)
        self.members.append(member)
        return member

    def stored(self, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """`storage`, made the first time."""
        with self.shared.change():
            if self.storage is None:
                self.storage = make()
            return self.storage

    def vote(self, rows: RowView | None, wanted: Callable[[int, int], np.ndarray]) -> None:
        """One more wants those of `rows` start:stop that are `wanted(start, stop)`."""
        if rows is not None:
            rows.add_to(self._coming, wanted)
            return
        for start in range(0, len(self._coming), _PIECE):
            part = self._coming[start : start + _PIECE]
            part += wanted(start, start + len(part))

    def go_on(self) -> None:
        """The next round begins, if all that train are ready for it."""
        if self.members and all(member.rounds > self.round for member in self.members):
            self.round, self.leader = self.round + 1, self.members[0]
            self.votes, self._coming = self._coming, self.votes
            self._coming[:] = 0
