"""What bundle-dca sees of one class against the rest: two cuts a pass for every active class.

Row state: that of streamcut.oracles.ovr_passes, and `codes` (cuts, K): the share of a row in each cut of each class, by
the cut's slot in the class's bundle (streamcut.compiled.ovr_dual).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import BundleSize, Merge
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.chunk import Chunk
from streamcut.compiled import ovr_dual, records
from streamcut.execution.cache_passes import FillingPass, Step, SweepPass
from streamcut.execution.row_cache import CacheSize, RowCache
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.losses.classes import OneVsRest
from streamcut.losses.loss import Loss
from streamcut.models.checkpoint import Fill
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.ascent import write_back
from streamcut.oracles.dual.crammer_singer import ClassesDualPass
from streamcut.oracles.dual.dual_pass import DualSums
from streamcut.oracles.dual.ovr_cache import OvrCache, pair_buffers
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.worth import Worth
from streamcut.oracles.ovr import OvrOracle, side_by_side
from streamcut.oracles.ovr_passes import constants
from streamcut.oracles.row_passes import RowPass, Totals

_VISITS = 2  # steps for each pair of a group while it is in cache, as long as it is free
ORDER = RandomOrder(nnz=1 << 17, batch=8)  # rows of a group stay in the second cache level


@dataclass(frozen=True, slots=True)
class OvrAscent:
    """Where a pass starts, for the A classes `active` of K: `w` (D, A), and the mixtures (cuts, K) of the rows' shares behind it.

    cut, dual  (A) slots of both cuts of the pass
    kappa      (A) the predicted cut is at w_b + κ(w − w_b)
    enough     (A) sweeps over cached rows end when one brings no more than this (units of F)
    value      (A) of the dual at the mixtures, nearly
    start      (D, A) where the running w′ (v′, where the penalty has a threshold) starts if not at w
    """

    active: np.ndarray
    w: np.ndarray
    mixture: np.ndarray
    cut: np.ndarray
    dual: np.ndarray
    kappa: np.ndarray
    enough: np.ndarray
    value: np.ndarray
    start: np.ndarray | None = None

    @property
    def running(self) -> np.ndarray:
        """The w′ of the first row."""
        return self.w if self.start is None else self.start


class OvrDualOracle(OvrOracle):
    """A OvrOracle that also does dual coordinate ascent.

    Rows remember their shares in `cuts` of each class, which may grow. Every lane has a cache of `size` (None: none), which is
    swept at most `sweeps` times after each pass.
    """

    def __init__(
        self,
        runner: PassRunner,
        risk: OneVsRest,
        *,
        C: float,
        bias: float,
        cuts: BundleSize,
        size: CacheSize | None,
        sweeps: int,
        seed: int = 0,
        penalty: L2 = SQUARES,
    ) -> None:
        super().__init__(runner, risk, C=C, bias=bias, penalty=penalty)
        runner.row_state.add("codes", risk.loss.code_type, (cuts.first, risk.classes), most=cuts.most)
        self.cuts = cuts.first
        self._caches: dict[int, OvrCache] = {}
        if size is not None and sweeps > 0:
            self._caches = {start: OvrCache(size, risk) for start in runner.lanes.bounds[:-1]}
        self._limits = dict.fromkeys(self._caches, np.inf)  # of the last whole pass: one that is broken off leaves nothing behind
        self._sweeps, self._seed = sweeps, seed
        self._last = np.full((2, risk.classes), -1)  # slots of the cuts of each class whose sums are known
        self._sums: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # of the last pass: classes, cuts, their Σ u f

    def ascend_all(
        self, w: list[np.ndarray], mixtures: list[np.ndarray], slots: np.ndarray, kappa: np.ndarray, enough: np.ndarray,
        value: np.ndarray, *, start: Sequence[np.ndarray] | None = None, first: bool = False,
    ) -> list[tuple[Cut, Cut]]:  # fmt: skip
        """One pass for the active classes: the margins of their w, and two cuts of each: the predicted one, the ascent's.

        `mixtures` (cuts,) are of the shares that each w is made of, `slots` (2, A) those of the cuts, `start` is where the ascent
        of each starts if not at w. Each cut is summed from its shares alone, whose bounds the kernels keep: valid for any stored
        shares. `first` sets `total_weight`.
        """
        mixture = np.zeros((len(mixtures[0]), self._risk.classes))
        mixture[:, self.active] = np.stack(mixtures, axis=1)
        overwritten = (self._last[:, None, self.active] == slots).any(axis=(0, 1))
        self._last[:, self.active[overwritten]] = -1
        last = self._last[:, self.active]
        begin = None if start is None else side_by_side(start)
        ascent = OvrAscent(self.active, side_by_side(w), mixture, slots[0], slots[1], kappa, enough, value, begin)
        order, places = ORDER.drawn(self._runner.feed.data.manifest.statistics, self.passes, self._seed)
        common = self._risk, self._grids, self.C, self._bias
        known: Any = last, self._caches, self._limits, first, self.penalty.threshold
        sums = self._read(OvrDualPass(*common, ascent, order, places, *known))
        if self._sums is not None:
            self._go_on_from_last(last, sums)
        if first:
            self._learn(sums.totals)
        self._scored_all(w)
        if self._caches:
            self._limits = sums.limits
            self._sweep(ascent, sums)
        if self._loss.incremental:
            self._last[:] = -1  # also of classes that are not trained now, and may be later
            self._last[:, self.active] = slots
            self._sums = self.active, sums.cuts, sums.b
        A = len(w)
        cuts = self._divided_all(sums.cuts, sums.b)
        return list(zip(cuts[:A], cuts[A:], strict=True))

    def follow_all(self, merges: list[list[Merge]]) -> None:
        """Rows' shares follow the merges in the bundles of the active classes. The data is not read."""
        flat = [(int(k), merge) for k, own in zip(self.active, merges, strict=True) for merge in own]
        for k, merge in flat:
            if merge.into in self._last[:, k]:
                self._last[:, k] = -1
        if flat:
            self._runner.run(OvrMergePass(self._loss, flat))

    def widen(self, cuts: int) -> None:
        """Rows keep their dual variables in this number of cuts of each class from now on. The data is not read."""
        if cuts > self.cuts:
            self._runner.row_state.widen("codes", cuts)
            self.cuts = cuts

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        return {**numbers, "cache_limits": list(self._limits.values()), "cuts": self.cuts}, arrays

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        self.widen(numbers["cuts"])
        super().restore(numbers, fill)
        self._last[:] = -1
        self._limits = dict(zip(self._caches, numbers["cache_limits"], strict=True))

    def _go_on_from_last(self, last: np.ndarray, sums: DualSums) -> None:
        """Add the last pass's sums to `sums`, which are the differences to them where `last` says so."""
        assert self._sums is not None
        before, cuts, b = self._sums
        at = np.searchsorted(before, self.active)
        columns = np.where(last >= 0, np.stack([at, at + len(before)]), -1).ravel()
        ovr_dual.add_columns(cuts, columns, sums.cuts)
        ovr_dual.add_columns(b, columns, sums.b)

    def _sweep(self, ascent: OvrAscent, sums: DualSums) -> None:
        """At most `sweeps` over the cached rows of all lanes at once, each followed by an exact step of every class.

        A class ends when another sweep is not worth it (streamcut.oracles.dual.worth).
        """
        assert sums.w is not None
        A, entries = len(ascent.active), self._runner.feed.data.manifest.statistics.nnz
        W, squares = self.penalty.weights(sums.w.reshape(-1)).reshape(sums.w.shape), np.empty((2, A))
        ovr_dual.line_products(W, W, squares)
        rise = self.C * sums.b[0, A:] - 0.5 * squares[1] - ascent.value
        worth = Worth.after(entries, rise, ascent.enough)
        at_work, theta = np.arange(A), np.ones(A)
        for number in range(self._sweeps):
            seed = self.passes, self._seed
            l1 = self.penalty.threshold
            work = OvrSweepPass(self._caches, sums.w, self.C, l1, self._bias, seed, number, theta, at_work)
            step, _ = self._runner.run(work)
            theta, rise = self.penalty.steps(sums.w, step.delta, step.gain)
            ovr_dual.move(sums.w, step.delta, theta)
            at_work = at_work[worth.goes_on(rise, step.work)[at_work]]
            if len(at_work) == 0:
                break
        write_back(self._runner, self._caches, sums, ascent.dual, self._bias, self._grids, theta)


@dataclass(frozen=True, slots=True)
class OvrDualPass(ClassesDualPass):
    """A DualPass of the active classes; last (2, A)."""

    risk: OneVsRest
    ascent: OvrAscent
    last: np.ndarray
    caches: Mapping[int, OvrCache]

    def begin(self) -> DualSums:
        D, A = self.ascent.w.shape
        totals = Totals.nothing(D) if self.first else None
        return DualSums(self.ascent.running.copy(), np.zeros((D, 2 * A)), constants(self.risk.loss, 2 * A), totals)

    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        assert sums.w is not None
        now, A, size = self.ascent, len(self.ascent.active), len(self.order)
        slots = np.flatnonzero(now.mixture.any(axis=1))
        mixture = records.Mixture(slots, self.risk.loss.raw_parts(now.mixture[slots]))
        waiting, pending, mixed = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(self.risk.classes)
        return ovr_dual.ascend(
            self.risk.loss,
            records.Rows(chunk.indptr, chunk.indices, chunk.data, rows["t"], chunk.weight),
            now.active,
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w, now.kappa, mixture, self.C, self.bias, self.l1),
            records.Slots(now.cut, now.dual, self.last[0], self.last[1]),
            self.grids,
            self.visits(chunk, _VISITS),
            records.DualSums(sums.w, sums.cuts, sums.b),
            records.PairScratch(np.empty((size, A)), waiting, pending, mixed, pair_buffers(A)),
        )

    def enter(self, sums: Any, first_row: int) -> None:
        FillingPass.enter(self, sums, first_row)
        if self.caches:
            sums.cache.serve(self.ascent.active)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        now = self.ascent
        assert isinstance(cache, OvrCache)
        cache.collect(chunk, rows["t"], keys, self.bias, rows["t"], now.active, rows["z"], rows["codes"], now.dual)


@dataclass(frozen=True, slots=True)
class OvrSweepPass(SweepPass):
    """A SweepPass of the classes in columns `at_work`."""

    at_work: np.ndarray
    caches: Mapping[int, OvrCache]

    def finish(self, step: Step, rows: Rows, first_row: int) -> None:
        self.caches[first_row].at_work = self.at_work
        SweepPass.finish(self, step, rows, first_row)


@dataclass(frozen=True, slots=True)
class OvrMergePass(RowPass):
    """The rows' shares follow the merges in the bundles of classes; the data is not read."""

    loss: Loss
    merges: list[tuple[int, Merge]]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        classes, into, gone = (np.array(x) for x in zip(*((k, m.into, m.gone) for k, m in self.merges), strict=True))
        weight = np.array([merge.share for _, merge in self.merges])
        ovr_dual.merge_shares(self.loss, rows["codes"], classes, into, gone, weight)
