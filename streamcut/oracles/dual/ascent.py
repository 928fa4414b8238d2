"""The oracle of `bundle-dca`: two cuts a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import Grids
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.checkpoint import Fill
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.interior import solve_cached, solving_bytes
from streamcut.oracles.dual.loss_cache import LossCache, SweepPass, SweepsPass, WriteBackPass
from streamcut.oracles.dual.passes import Ascent, DualSums, MergePass, RowsDualPass
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.worth import LESS, LITTLE, Worth
from streamcut.oracles.linear import LinearOracle

# Rows of a group stay in the second cache level.
ORDER = RandomOrder(nnz=1 << 16, batch=32, within=False)

_CLOSE = 100.0  # times the least gain of a sweep: the gap to which cached rows are solved at once


class _Last(NamedTuple):
    """The predicted cut of the last pass: its slot, the grids of its sums, and the sums (folds, D) and (4)."""

    slot: int
    grids: Grids
    a: np.ndarray
    b: np.ndarray


class DualOracle(LinearOracle):
    """A linear oracle that also does dual coordinate ascent: its cuts are sums of the rows' shares of the dual.

    Rows remember their shares in `cuts` cuts: the row state's `codes`. They are visited in the `order` drawn with `seed`. Every
    lane has a cache of `size` (None: none), which is swept at most `sweeps` times after each pass. Lanes of more than a batch are
    read from `streams` places at once.
    """

    reached: np.ndarray | None = None  # the w′ at the end of the last pass and its sweeps, where passes are accelerated
    solved: np.ndarray | None = None  # the w that solves for the rows cached then, if requested
    _last: _Last | None = None  # while rows remember their shares in that cut

    def __init__(
        self, runner: Runner, risk: PointwiseRisk, *,
        C: float, bias: float, cuts: int, size: CacheSize | None, sweeps: int, seed: int = 0, free: bool = False,
        streams: int = 1, order: RandomOrder = ORDER,
    ) -> None:  # fmt: skip
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, free=free)
        statistics, loss, self.cuts = runner.feed.data.manifest.statistics, risk.loss, cuts
        runner.row_state.add("codes", loss.code_type, (cuts,))
        self._order, self._seed, self._sweeps = order, seed, sweeps
        self._caches: dict[int, LossCache] = {}  # by the first row of their lane
        if size is not None and sweeps > 0:
            self._caches = {start: LossCache(size, loss) for start in runner.lanes.bounds[:-1]}
        self._solves = bool(self._caches) and solving_bytes(loss, statistics, self.dimension) > 0
        self._streams = streams if order.has_streams(statistics, runner.lanes) else 1
        self.smooth = loss.smooth  # then passes are plain at first (streamcut.solvers.acceleration)

    def ascend(self, ascent: Ascent, *, first: bool = False) -> tuple[Cut, Cut]:
        """One pass: the scores of w, the predicted cut, and the cut of the shares after a sweep; `first` sets `total_weight`.

        Each is summed from its shares alone, and the kernels keep these within bounds: it is valid for any stored shares.
        """
        sums = self._read(self._pass(ascent, first))
        self._complete(ascent, sums)
        if first:
            self._learn(sums.totals)
            ascent = replace(ascent, enough=ascent.enough * self.unit)
        self._scored(ascent.w)
        self.solved = None
        if self._caches:
            self._sweep(ascent, sums)
        self.reached, sums.w = sums.w if self.accelerated else None, None
        predicted, swept = (self._divided(a.reshape(self._grids.folds, -1), b) for a, b in zip(sums.cuts, sums.b, strict=True))
        if first:
            self.tighten()
        return predicted, swept

    def _pass(self, ascent: Ascent, first: bool) -> RowsDualPass:
        statistics, streams = self._runner.feed.data.manifest.statistics, None
        order, places = self._order.drawn(statistics, self.passes, self._seed, mixed=True)
        if self._streams > 1:
            streams = self._order.streams(statistics, self._streams, self.passes, self._seed)
        sample = (self.passes, self._seed) if self.accelerated else None  # of the free rows, for the cache
        if self._last is not None and (self._last.grids != self._grids or self._last.slot in (ascent.cut, ascent.dual)):
            self._last = None
        return RowsDualPass(
            self._risk, self._grids, self.C, self._bias, ascent, order, places, self._caches, self._first, first,
            l1=self.penalty.threshold, streams=streams, sample=sample, last=-1 if self._last is None else self._last.slot,
            near=self._order.near(statistics), fetched=self._order.fetched(statistics, order),
        )  # fmt: skip

    def _complete(self, ascent: Ascent, sums: DualSums) -> None:
        """Passes sum changes only: add their base values."""
        (predicted, other), (b, other_b) = sums.cuts, sums.b
        if self._last is not None:
            vectors.add(predicted.reshape(-1), self._last.a.reshape(-1))
            b += self._last.b
        vectors.add(other.reshape(-1), predicted.reshape(-1))
        other_b += b
        self._last = _Last(ascent.cut, self._grids, predicted.copy(), b.copy())

    def follow(self, merges: list[Merge]) -> None:
        """Rows' shares follow the bundle's merges. The data is not read."""
        if self._last is not None and any(self._last.slot in (merge.into, merge.gone) for merge in merges):
            self._last = None
        if merges:
            self._runner.run(MergePass(self._loss, merges))

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        super().restore(numbers, fill)
        self._last = None

    @property
    def accelerated(self) -> bool:
        """Whether streamcut.solvers.acceleration determines where passes start."""
        return len(self._runner.lanes) == 1 and self.penalty.threshold is None

    @property
    def first_stretch(self) -> float:
        """σ of the first accelerated pass."""
        # the curvature at which a share moves by 1
        return self.stretch_for(self.C, max(1.0, self._loss.least_curvature) if self._loss.smooth else self.unit)

    def best_intercept(self, w_b: np.ndarray) -> float | None:
        """The best move of a free intercept at w_b, in units of scores, if the margins suffice to find it."""
        return None

    def _sweep(self, ascent: Ascent, sums: DualSums) -> None:
        assert sums.w is not None
        C, w = self.C * ascent.stretch, self.penalty.weights(sums.w)
        rise = C * float(sums.b[1, :2].sum()) - 0.5 * vectors.dot(w, w) - ascent.value  # of the dual for this C
        part = LITTLE if self.accelerated or len(self._caches) > 1 else LESS
        worth = Worth.after(self._runner.feed.data.manifest.statistics.nnz, rise, ascent.enough, part)
        seed, at_once = (self.passes, self._seed), self._at_once(ascent, sums.w)
        theta = sweep_caches(self._runner, self._caches, sums.w, C, self.penalty, self._bias, seed, self._sweeps, worth, at_once)
        shapes = sums.cuts.shape, sums.b.shape
        change, _ = self._runner.run(WriteBackPass(self._caches, ascent.dual, self._bias, self._grids, shapes, theta))
        vectors.add(sums.cuts.reshape(-1), change.cuts.reshape(-1))
        sums.b += change.b

    def _at_once(self, ascent: Ascent, w: np.ndarray) -> float:
        """A joint step of all cached rows, before they are swept; returns the fraction taken."""
        if not (self._solves and ascent.at_once):
            return 1.0
        now = self.penalty.weights(w)  # the dual falls no faster than ½‖w + Δv‖², for any threshold
        solved = solve_cached(self._caches, now, ascent.w, self.C, self._bias, _CLOSE * ascent.enough)
        if not np.isfinite(vectors.dot(solved.delta, solved.delta) + vectors.dot(solved.point, solved.point) + solved.gain):
            return 0.0
        self.solved = solved.point if self.penalty.threshold is None else None
        theta, _ = self.penalty.step(w, solved.delta, solved.gain)
        vectors.move(w, w + solved.delta, theta)
        return theta


def sweep_caches(
    runner: Runner,
    caches: Mapping[int, LossCache],
    w: np.ndarray,
    C: float,
    penalty: L2,
    bias: float,
    seed: tuple[int, int],
    sweeps: int,
    worth: Worth,
    theta: float = 1.0,
) -> float:
    """At most `sweeps` over the cached rows of all lanes at once, each followed by an exact step between before and after.

    w (v, where the penalty has a threshold) moves in place. Lanes that sweep independently overshoot together; along
    the sum of their steps the dual is a parabola, or piecewise one. A single lane keeps its full steps. Ends when another sweep
    no longer pays. `theta` is the fraction taken of the previous step; returns the fraction of the last one.
    """
    if len(caches) == 1:
        work = SweepsPass(caches, w, C, penalty.threshold, bias, seed, 0, theta, sweeps, worth, penalty.conjugate)
        w[:] = runner.run(work)[0].delta
        return 1.0
    for number in range(sweeps):
        step, _ = runner.run(SweepPass(caches, w, C, penalty.threshold, bias, seed, number, theta))
        theta, rise = penalty.step(w, step.delta, step.gain)
        vectors.move(w, w + step.delta, theta)
        if not worth.goes_on(rise, step.work):
            break
    return theta
