"""Rows of one qid must stand together: the check, over any number of chunks, and the split that keeps them whole."""

from __future__ import annotations

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.io.shuffle import random_keys, take_rows
from streamcut.units import format_bytes

SPLIT_STREAM = 1  # of random_keys: a split says nothing about a shuffle of the same seed


class GroupCheck:
    """Sees every chunk in order; raises BadInputError where a qid comes back, or where only some rows have one.

    Remembers every qid, in at most `memory` bytes (MemoryBudgetError). `grouped` False checks the presence of qid only.
    """

    def __init__(self, memory: int, grouped: bool = True) -> None:
        self.memory, self.grouped = memory, grouped
        self.has_qid: bool | None = None
        self._seen: list[np.ndarray] = []  # sorted arrays
        self._last: int | None = None
        self._count = 0

    def add(self, chunk: Chunk) -> None:
        if chunk.n_rows == 0:
            return
        if self.has_qid is not None and self.has_qid != (chunk.qid is not None):
            word = "has no" if self.has_qid else "has a"
            raise BadInputError(f"row {chunk.first_row} (0-based) {word} qid, unlike the rows before; give all rows one, or none")
        self.has_qid = chunk.qid is not None
        if chunk.qid is None or not self.grouped:
            return
        starts = np.flatnonzero(np.concatenate([[int(chunk.qid[0]) != self._last], chunk.qid[1:] != chunk.qid[:-1]]))
        self._last = int(chunk.qid[-1])
        fresh = chunk.qid[starts]
        order = np.argsort(fresh, kind="stable")
        ranked = fresh[order]
        again = np.concatenate([[False], ranked[1:] == ranked[:-1]]) if len(ranked) else np.empty(0, bool)
        for seen in self._seen:
            at = np.minimum(np.searchsorted(seen, ranked), len(seen) - 1)
            again |= seen[at] == ranked
        if again.any():
            row = int(starts[order[again]].min())
            raise BadInputError(
                f"row {chunk.first_row + row} (0-based): qid {chunk.qid[row]} was seen before, with others in between; "
                f"rows of one qid must stand together: sort them, or use --group-by-qid"
            )
        self._remember(ranked)

    def _remember(self, ranked: np.ndarray) -> None:
        if not len(ranked):
            return
        self._count += len(ranked)
        needed = 8 * 2 * self._count  # twice while arrays are joined
        if needed > self.memory:
            raise MemoryBudgetError(
                f"telling whether {self._count:,} qids are grouped needs {format_bytes(needed)}, but --memory leaves "
                f"{format_bytes(self.memory)} for it; raise --memory, or use --group-by-qid, which needs no memory for it"
            )
        self._seen.append(ranked)
        if len(self._seen) > 64:
            self._seen = [np.sort(np.concatenate(self._seen))]


class Splitter:
    """Deals rows to (OUTPUT, --split-output): with probability `share` to the first, by seed and row number (or qid) alone."""

    def __init__(self, share: float | None, seed: int) -> None:
        self.share, self.seed = share, seed

    def parts(self, chunk: Chunk, *more: np.ndarray) -> list[tuple]:
        """[(rows, more…) for each output]; `more` are arrays with one element a row."""
        if self.share is None:
            return [(chunk, *more)]
        numbers = chunk.first_row + np.arange(chunk.n_rows) if chunk.qid is None else chunk.qid
        first = random_keys(self.seed, numbers, SPLIT_STREAM) < np.uint64(self.share * 2.0**64)
        return [(take_rows(chunk, which), *(a[which] for a in more)) for which in (np.flatnonzero(first), np.flatnonzero(~first))]
