"""Checks that the rows of each query are contiguous, over all blocks and files, in bounded memory."""

from __future__ import annotations

import numpy as np

from streamcut.errors import MemoryBudgetError

MAX_GROUPS = 1 << 23  # remembered: 64 MB


class GroupCheck:
    """Remembers the qid of every group so far, and finds the first row that returns to an earlier one.

    Beyond `limit` groups the list is dropped, and only a qid above all earlier ones is still known to be new. So sorted files of
    any size pass, and an unsorted file with more groups is refused rather than trusted.
    """

    def __init__(self, limit: int = MAX_GROUPS) -> None:
        self._limit = limit
        self._runs: list[np.ndarray] = []  # sorted, each at least twice as long as the next
        self._count = 0
        self._last: int | None = None
        self._top = -1

    def first_repeat(self, qid: np.ndarray) -> int | None:
        """Number of the first of these rows (qid int64 (n), the next rows of the data) whose group was left before, else None.

        Raises MemoryBudgetError when that can't be determined in the memory allowed.
        """
        starts = np.flatnonzero(np.concatenate(([self._last is None or qid[:1] != self._last], [qid[1:] != qid[:-1]]), axis=None))
        ids = qid[starts]
        if len(ids) == 0:
            return None
        if ids[0] <= self._top or (ids[1:] <= ids[:-1]).any():
            if self._count > self._limit:
                raise MemoryBudgetError(
                    f"after {self._limit:,} groups, qid {ids[0]} is not above all before it; whether it is new can't be told "
                    "in bounded memory; sort the rows by qid, or use --group-by-qid"
                )
            seen = np.ones(len(ids), dtype=bool)
            seen[np.unique(ids, return_index=True)[1]] = False
            for run in self._runs:
                place = np.minimum(np.searchsorted(run, ids), len(run) - 1)
                seen |= run[place] == ids
            if seen.any():
                return int(starts[np.argmax(seen)])
        self._remember(np.sort(ids))
        self._last = int(qid[-1])
        self._top = max(self._top, int(ids.max()))
        return None

    def _remember(self, ids: np.ndarray) -> None:
        self._count += len(ids)
        if self._count > self._limit:
            self._runs = []
            return
        while self._runs and len(self._runs[-1]) < 2 * len(ids):
            ids = np.sort(np.concatenate((self._runs.pop(), ids)), kind="stable")
        self._runs.append(ids)
