"""Lanes: fixed ranges of rows, each summed in order by the worker that takes it.

The lanes depend on the data and the options alone, never on workers or memory, and their sums are added in lane order. So the
same store gives the same bits on any set of workers. Another sharding may not: a block of rows lies in one shard.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamcut.io.manifest import Statistics

_MAX_LANES = 16
_MIN_NNZ = 1 << 19  # below it, threads cost more than they gain
_MIN_NNZ_PER_FEATURE = 4  # a lane owns a dense sum of d numbers: it should read more entries than that


@dataclass(frozen=True, slots=True)
class Lanes:
    """`bounds[l]:bounds[l + 1]` are the rows of lane l."""

    bounds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def rows(self, lane: int) -> tuple[int, int]:
        return self.bounds[lane], self.bounds[lane + 1]


def plan_lanes(statistics: Statistics, lanes: int | None = None) -> Lanes:
    """`lanes` of them (never more than rows), or the largest power of two, at most 16, that pays for its dense sums."""
    n = statistics.n_rows
    if lanes is None:
        enough = max(_MIN_NNZ, _MIN_NNZ_PER_FEATURE * statistics.n_features)
        useful = min(_MAX_LANES, statistics.nnz // enough)
        lanes = 1 << (max(useful, 1).bit_length() - 1)
    lanes = min(lanes, n)
    return Lanes(tuple(n * lane // lanes for lane in range(lanes + 1)))
