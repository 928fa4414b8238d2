"""The row cache of one of several trainings that share the rows in it (streamcut.execution.row_pool)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import dual
from streamcut.execution.passes import CachingPass
from streamcut.execution.row_pool import Member
from streamcut.execution.row_state import Rows
from streamcut.losses.loss import FREE_FIRST, Loss
from streamcut.oracles.dual.blocks import Blocks
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.oracles.dual.passes import At

_SHARED = ("_indptr", "_indices", "_data", "_key", "_weight", "_square", "_target")
_PIECE = 1 << 16  # rows that are looked at once
_SAMPLE = 1 << 15  # keys that are kept, at least, where there are as many


class PooledCache(LossCache):
    """Rows of the pool that `member` takes part in, with its own dual variables.

    It wants those rows with the smallest keys that the pool would hold, of rows in it those that sweeps still visit. Who leads
    fills the pool, with rows that many want before others. Others take no rows, and their dual variables from the row state once
    the pool is full (`RecallSharesPass`).
    """

    def __init__(self, member: Member, loss: Loss) -> None:
        super().__init__(member.pool.size, loss)
        self.member = member
        vars(self).update(member.pool.stored(lambda: {name: getattr(self, name) for name in _SHARED}))
        self._share = np.zeros(self.size.rows)
        self._own_places = np.empty(self.size.rows, np.int64)  # in the order of sweeps
        self._wanted = FREE_FIRST  # the key below which rows are
        self._votes: np.ndarray | None = None  # of the leader: how many others want each of its rows
        self._sample: list[np.ndarray] = []

    @property
    def follows(self) -> bool:
        """Whether another training has filled it."""
        return not self.member.leads

    def begin(self, last_limit: float) -> None:
        if self.member.rounds:
            self._want_again()
        self._votes = self.member.begin()
        super().begin(np.inf)
        self._sample.clear()

    def _want_again(self) -> None:
        """Of the cached rows those that the last sweep left."""
        moving = np.zeros(self.n, bool)
        moving[self._order] = True
        self.member.change(self.numbers, moving)

    def ranked(self, first_row: int, keys: np.ndarray) -> np.ndarray:
        wanted = keys < self._wanted
        self.member.want(first_row, wanted)
        every = max(1, self.member.n_rows // _SAMPLE)
        self._sample.append(keys[-first_row % every :: every].copy())
        if self._votes is None:
            return keys
        votes = self._votes[first_row : first_row + len(keys)]
        return 1.0 - 1.0 / (1.0 + keys) - wanted - votes  # keys are 0 to inf

    def fill(self, offered: Callable[..., tuple[int, int]], rows: int) -> None:
        if self.member.leads:
            super().fill(offered, rows)

    def end(self) -> None:
        """Learn which keys are small; wait for the leader, and take over the rows that it took."""
        member, sample = self.member, np.concatenate(self._sample)
        place = min(self.size.rows * len(sample) // self.member.n_rows, len(sample) - 1)
        self._wanted = min(float(np.partition(sample, place)[place]), FREE_FIRST)
        self._sample.clear()
        if member.leads:
            member.filled(self.numbers)
            return
        member.wait()
        self.n = member.place(self._number)

    def _own(self) -> np.ndarray:
        found = 0
        for start in range(0, self.n, _PIECE):
            own = np.flatnonzero(self.numbers[start : start + _PIECE] >= 0)
            self._own_places[found : found + len(own)] = own + start
            found += len(own)
        return self._own_places[:found]

    def _among(self, first_row: int, count: int) -> np.ndarray:  # type: ignore[override]
        return np.flatnonzero((self.numbers >= first_row) & (self.numbers < first_row + count))

    def recall(self, blocks: Any, slots: np.ndarray, codes: np.ndarray, first_row: int) -> None:
        """The shares of the own rows among those from `first_row` on become what column `slots` of their `codes` says."""
        dual.recall(self._loss, self._rows(), self._among(first_row, len(codes)), blocks, slots, codes)


@dataclass(frozen=True, slots=True)
class RecallSharesPass(CachingPass):
    """Caches that others have filled get the dual variables of their rows, which the pass left in column `slots` (blocks,)."""

    caches: dict[int, PooledCache]
    slots: np.ndarray
    blocks: Blocks
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def begin(self) -> At:
        return At()

    def enter(self, at: At, first_row: int) -> None:
        at.row = first_row

    def visit_rows(self, at: At, rows: Rows) -> None:
        (cache,) = self.caches.values()
        cache.recall(self.blocks.rows(at.row), self.slots, rows["codes"], at.row)
        at.row += len(rows["codes"])

    def merge(self, total: At, part: At) -> At:
        return total
