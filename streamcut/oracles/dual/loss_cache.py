"""The row cache of a lane for losses of single rows, and the passes that sweep over it and write its shares back.

A pass finds in the `caches`, by the first row of their lane, what the last pass left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import dual, vectors
from streamcut.compiled.records import CachedRows
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache, joined_seed
from streamcut.execution.row_state import Rows
from streamcut.foundation.rounding import Grids
from streamcut.losses.loss import Loss
from streamcut.oracles.dual.worth import Worth


def row_bytes(loss: Loss) -> int:
    """Bytes of a cached row in addition to its entries, including a numeric target."""
    return ROW_BYTES + 8 * (loss.targets == "numbers")


class LossCache(RowCache):
    """Rows with a share of the dual of `loss`, which sweeps move starting from weights common to all lanes."""

    def __init__(self, size: CacheSize, loss: Loss) -> None:
        super().__init__(size)
        self.loss, self._before = loss, np.empty(size.rows)
        self._target = np.empty(size.rows) if loss.targets == "numbers" else None
        self._places: np.ndarray | None = None  # places of the rows, by ascending row number
        csr = self._indptr, self._indices, self._data
        self._rows = CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._target)

    def _arrays(self) -> tuple[Any, ...]:
        return (self._rows,)

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), *(() if self._target is None else (self._target,))

    def begin(self) -> None:
        super().begin()
        self._places = None

    def sweep(self, seed: int, C: float, l1: float | None, bias: float, w: np.ndarray, *, first: bool) -> float:
        """One sweep, in place on w, which can be undone; returns C Σ u Δf. `first`: the first after a pass, over all rows."""
        n = self.n
        if first:
            self._order, self._slack = np.arange(self.n), np.inf
        self._shuffle(seed)
        self._before[:n] = self._share[:n]
        self.work = len(self._order) * int(self._indptr[n]) // max(n, 1)
        gain, left, largest = dual.sweep(self.loss, self._order, self._rows, C, bias, l1, self._slack, w)
        self._order, self._slack = self._order[:left], largest * self.near
        return gain

    def step_back(self, theta: float) -> None:
        """Keep only the fraction `theta` of the last sweep's step."""
        if theta == 1.0:
            return
        share, before = self._share[: self.n], self._before[: self.n]
        share -= before
        share *= theta
        share += before

    def write_back(self, slot: int, bias: float, grids: Grids, codes, cuts, sums, *, first_row: int) -> None:
        """Write the shares of cached rows to `codes`, for the rows from `first_row` on, and update cuts and sums."""
        if self._places is None:  # rows may come from several places of the lane
            self._places = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + len(codes)), sorter=self._places)
        dual.write_back(self.loss, self._rows, self._places[first:last], first_row, slot, bias, grids, codes, cuts, sums)

    def gathered(self) -> CachedRows:
        """The cached rows."""
        rows, last = self._rows.part(slice(0, self.n)), self._indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def move_to(self, share: np.ndarray) -> None:
        """Set the shares (n) of cached rows; the next `step_back` takes part of that back. Few sweeps are to follow."""
        self._before[: self.n], self._share[: self.n], self.near = self._share[: self.n], share, 1.0


@dataclass(slots=True)
class Step:
    """The result of one sweep over the cached rows of some lanes: Δw and C Σ u Δf.

    work  entries of the rows that it visited
    """

    delta: np.ndarray
    gain: float = 0.0
    work: int = 0


@dataclass(frozen=True, slots=True)
class SweepPass(Pass):
    """Every lane sweeps its cached rows once, all from the same w; the data is not read. `number` counts from 0 after a pass.

    l1     the threshold of the penalty, or None
    seed   number of the pass, and that of the run
    theta  the fraction of the previous sweep that was accepted
    """

    caches: Mapping[int, LossCache]
    w: np.ndarray
    C: float
    l1: float | None
    bias: float
    seed: tuple[int, int]
    number: int
    theta: float
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
        vectors.add(total.delta, part.delta)
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
    worth: Worth
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


@dataclass(slots=True)
class Change:
    """The change of `cuts` and their Σ u f, `b`, by the shares of cached rows; in a lane also `cache` and its next row, `at`."""

    cuts: np.ndarray
    b: np.ndarray
    cache: LossCache | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class WriteBackPass(Pass):
    """Write the dual variables of cached rows to column `slot` of their codes; the data is not read.

    shapes  of the cuts and their Σ u f
    theta   the fraction of the last sweep that was accepted
    """

    caches: Mapping[int, LossCache]
    slot: int
    bias: float
    grids: Grids
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    theta: float
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
