"""Passes over row caches: filling them, sweeping over them, and writing the dual variables back.

A pass with `caches`, by the first row of their lane, finds in them what the last such pass left. One that needs data refills
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import vectors
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import RowCache, SweptCache
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids


class FillingPass(Pass, ABC):
    """Base of passes over the data that fill `caches`, at most one per lane. Within a lane, partial sums have a `cache`."""

    __slots__ = ()
    caches: Mapping[int, RowCache]

    @property
    def pure(self) -> bool:
        return not self.caches

    def emptied(self, first_row: int) -> Any:
        """The cache of the lane that begins at `first_row`, emptied; None: there is none."""
        if (cache := self.caches.get(first_row)) is not None:
            cache.begin()
        return cache

    @abstractmethod
    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        """Take the rows of `chunk` with the smallest `keys` (n) into the cache, with their shares from `rows`."""


@dataclass(slots=True)
class Step:
    """The result of one sweep over the cached rows of some lanes: Δw and C Σ u Δf, for several problems at once (A).

    work  entries of the rows that it visited
    """

    delta: np.ndarray
    gain: Any = 0.0
    work: int = 0


@dataclass(frozen=True, slots=True)
class SweepPass(Pass):
    """Every lane sweeps its cached rows once, all from the same w; the data is not read. `number` counts from 0 after a pass.

    l1     the threshold of the penalty, or None
    seed   number of the pass, and that of the run
    theta  the fraction of the previous sweep that was accepted, (A) for several problems
    """

    caches: Mapping[int, SweptCache]
    w: np.ndarray
    C: float
    l1: float | None
    bias: float
    seed: tuple[int, int]
    number: int
    theta: Any
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ()

    def begin(self, first_row: int) -> Step:
        return Step(self.w.copy())

    def finish(self, step: Step, rows: Rows, first_row: int) -> None:
        cache = self.caches[first_row]
        cache.step_back(self.theta)
        seed = joined_seed(self.seed[0], self.number, first_row, self.seed[1])
        step.gain = cache.sweep(seed, self.C, self.l1, self.bias, step.delta, first=self.number == 0)
        step.delta -= self.w
        step.work = cache.work

    def merge(self, total: Step, part: Step) -> Step:
        vectors.add(total.delta.reshape(-1), part.delta.reshape(-1))
        total.gain = total.gain + part.gain
        total.work += part.work
        return total


@dataclass(frozen=True, slots=True)
class SweepsPass(SweepPass):
    """The only lane sweeps its cached rows while `worth` it, at most `most` times; the step is the sum over all sweeps.

    worth  counts the sweeps: of this pass alone
    dual   R* of the penalty at v
    """

    most: int
    worth: Any
    dual: Callable[[np.ndarray], float]

    def finish(self, step: Step, rows: Rows, first_row: int) -> None:
        cache, v = self.caches[first_row], step.delta
        cache.step_back(self.theta)
        before = self.dual(v)
        for number in range(self.most):
            seed = joined_seed(self.seed[0], number, first_row, self.seed[1])
            gain = cache.sweep(seed, self.C, self.l1, self.bias, v, first=number == 0)
            now = self.dual(v)
            step.work += cache.work
            if not self.worth.goes_on(gain - (now - before), cache.work):
                break
            before = now


def joined_seed(*numbers: int) -> int:
    """One number below 2⁶³ from several: a seed for each combination."""
    seed = 0
    for number in numbers:
        seed = ((seed ^ number) * 0x9E3779B97F4A7C15 + 1) & (1 << 63) - 1
        seed ^= seed >> 29
    return seed


@dataclass(slots=True)
class Change:
    """The change of `cuts` and their Σ u f, `b`, by the shares of cached rows; in a lane also `cache` and its next row, `at`."""

    cuts: np.ndarray
    b: np.ndarray
    cache: SweptCache | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class WriteBackPass(Pass):
    """Write the dual variables of cached rows to column `slot` of their codes; the data is not read.

    shapes  of the cuts and their Σ u f
    theta   the fraction of the last sweep that was accepted, (A) for several problems
    """

    caches: Mapping[int, SweptCache]
    slot: Any
    bias: float
    grids: Grids
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    theta: Any
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def begin(self, first_row: int) -> Change:
        cache = self.caches[first_row]
        cache.step_back(self.theta)
        return Change(np.zeros(self.shapes[0]), np.zeros(self.shapes[1]), cache, first_row)

    def visit_rows(self, change: Change, rows: Rows) -> None:
        assert change.cache is not None
        codes = rows["codes"]
        change.cache.write_back(self.slot, self.bias, self.grids, codes, change.cuts, change.b, first_row=change.at)
        change.at += len(codes)

    def merge(self, total: Change, part: Change) -> Change:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        total.b += part.b
        return total
