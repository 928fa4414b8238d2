"""The oracle of `bundle-dca`: two cuts a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.execution.cache_passes import SweepPass, SweepsPass, WriteBackPass
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import CacheSize, SweptCache
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import Grids
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.checkpoint import Fill
from streamcut.oracles.decomposable import Cut, DecomposableOracle
from streamcut.oracles.dual.interior import solve_cached, solving_bytes
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.oracles.dual.passes import Ascent, MergePass, RowsDualPass
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.worth import LESS, LITTLE, Worth
from streamcut.oracles.linear import LinearOracle

# Rows of a group stay in the second cache level.
ORDER = RandomOrder(nnz=1 << 16, batch=32, within=False)

_CLOSE = 100.0  # times the least gain of a sweep: the gap to which cached rows are solved at once


class DualAscent(DecomposableOracle):
    """Base of oracles of dual coordinate ascent: passes that compute two cuts, summed from changes, and caches.

    Rows remember their shares in the cuts of the bundle: the row state's `codes`.
    """

    reached: np.ndarray | None = None  # the w′ at the end of the last pass and its sweeps, where passes are accelerated
    solved: np.ndarray | None = None  # the w that solves for the rows cached then, if requested
    smooth = False  # whether the dual is strongly concave, and passes are plain at first (streamcut.solvers.acceleration)
    _mixed = False  # whether all rows of a batch come in one random order, not group after group

    def prepare(
        self, merging: Callable[[Any], Pass], caches: Mapping[int, SweptCache], *,
        cuts: int, order: RandomOrder, sweeps: int, seed: int,
    ) -> None:  # fmt: skip
        """`merging(merges)` is the pass of the loss that follows merges; it must not hold the oracle: a cycle keeps its data.

        Rows remember their shares in `cuts` cuts, and are visited in the `order` drawn with `seed`. `caches`, by the
        first row of their lane, are swept at most `sweeps` times after each pass.
        """
        self._order, self._seed = order, seed
        self._merging, self._caches, self.cuts = merging, caches, cuts
        self._sweeps = sweeps

    def ascend(self, ascent: Ascent, *, first: bool = False) -> tuple[Cut, Cut]:
        """One pass: the scores of w, the predicted cut, and the cut of the shares after a sweep; `first` sets `total_weight`.

        Each is summed from its shares alone, and the kernels keep these within bounds: it is valid for any stored shares.
        """
        return self.ascended(ascent, self._read(self.ascent_pass(ascent, first=first)), first=first)

    def ascent_pass(self, ascent: Ascent, *, first: bool = False) -> Pass:
        """The pass of `ascend`."""
        order, places = self._order.drawn(self._runner.feed.data.manifest.statistics, self.passes, self._seed, mixed=self._mixed)
        return self._pass(ascent, order, places, self._caches, first)

    def _pass(self, ascent: Ascent, order: np.ndarray, places: np.ndarray, caches: Any, first: bool) -> Pass:
        """The pass of the loss."""
        raise NotImplementedError

    def ascended(self, ascent: Ascent, sums: Any, *, first: bool = False) -> tuple[Cut, Cut]:
        """The cuts that `ascend` derives from the sums of its pass."""
        self._complete(ascent, sums)
        if first:
            self._learn(sums.totals)
            ascent = replace(ascent, enough=ascent.enough * self.unit)
        self._scored(ascent.w)
        self.solved = None
        if self._caches:
            self._sweep(ascent, sums)
        self.reached, sums.w = sums.w if self.accelerated else None, None
        predicted, swept = self._cuts(sums)
        if first:
            self.tighten()
        return predicted, swept

    def _complete(self, ascent: Ascent, sums: Any) -> None:
        """Where passes sum changes only, add their base values."""

    def _cuts(self, sums: Any) -> Iterator[Cut]:
        """The predicted cut and the cut of the ascent."""
        for a, b in zip(sums.cuts, sums.b, strict=True):
            yield self._divided(a.reshape(self._grids.folds, -1), b)

    def follow(self, merges: Any) -> None:
        """Rows' shares follow the bundle's merges. The data is not read."""
        if merges:
            self._runner.run(self._merging(merges))

    def _sweep(self, ascent: Ascent, sums: Any) -> None:
        given: Any = {"seed": (self.passes, self._seed), "sweeps": self._sweeps}
        C = self._stretched(ascent)
        entries, rise = self._runner.feed.data.manifest.statistics.nnz, self._value(C, sums) - ascent.value
        given["worth"] = Worth.after(entries, rise, ascent.enough, self._least(ascent))
        given["theta"] = self._at_once(ascent, sums)
        where: Any = self._runner, self._caches, sums.w, C, self.penalty, self._bias
        self._write_back(sums, ascent.dual, sweep_caches(*where, **given))

    def _least(self, ascent: Any) -> float:
        """The fraction of a pass's gain that a sweep must reach (streamcut.oracles.dual.worth)."""
        return LESS

    @property
    def accelerated(self) -> bool:
        """Whether streamcut.solvers.acceleration determines where passes start."""
        return len(self._runner.lanes) == 1 and self.penalty.threshold is None

    @property
    def first_stretch(self) -> float:
        """σ of the first accelerated pass."""
        return self.stretch_for(self.C)

    def _stretched(self, ascent: Any) -> float:
        """The C that steps are for."""
        return self.C * ascent.stretch

    def _value(self, C: float, sums: Any) -> float:
        """The dual for this C at the end of a pass."""
        w = self.penalty.weights(sums.w.reshape(-1))
        return C * self._constant(sums) - 0.5 * vectors.dot(w, w)

    def _constant(self, sums: Any) -> float:
        """The constant term of the dual from the rows' shares, as in `sums`."""
        return float(sums.b[1, :2].sum())

    def _at_once(self, ascent: Ascent, sums: Any) -> Any:
        """A joint step of all cached rows, before they are swept; returns the fraction taken."""
        return 1.0

    def _write_back(self, sums: Any, slot: Any, theta: Any) -> None:
        write_back(self._runner, self._caches, sums, slot, self._bias, self._grids, theta)


class _Last(NamedTuple):
    """The predicted cut of the last pass: its slot, the grids of its sums, and the sums (folds, D) and (4)."""

    slot: int
    grids: Grids
    a: np.ndarray
    b: np.ndarray


class DualOracle(DualAscent, LinearOracle):
    """A linear oracle that also does dual coordinate ascent: its cuts are sums of the rows' shares of the dual.

    Rows remember their shares in `cuts` cuts. Every lane has a cache of `size` (None: none), which is swept at
    most `sweeps` times after each pass. Lanes of more than a batch are read from `streams` places at once.
    """

    _mixed = True
    _last: _Last | None = None  # while rows remember their shares in that cut

    def __init__(
        self, runner: Runner, risk: PointwiseRisk, *,
        C: float, bias: float, cuts: int, size: CacheSize | None, sweeps: int, seed: int = 0, free: bool = False,
        streams: int = 1, order: RandomOrder = ORDER,
    ) -> None:  # fmt: skip
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, free=free)
        loss = risk.loss
        runner.row_state.add("codes", loss.code_type, (cuts,))
        caches = {} if size is None or sweeps == 0 else {start: LossCache(size, loss) for start in runner.lanes.bounds[:-1]}
        self.prepare(partial(MergePass, loss), caches, cuts=cuts, order=order, sweeps=sweeps, seed=seed)
        self._solves = bool(caches) and solving_bytes(loss, runner.feed.data.manifest.statistics, self.dimension) > 0
        self._streams = streams if order.has_streams(runner.feed.data.manifest.statistics, runner.lanes) else 1
        self.smooth = loss.smooth

    @property
    def first_stretch(self) -> float:
        # the curvature at which a share moves by 1
        return self.stretch_for(self.C, max(1.0, self._loss.least_curvature) if self._loss.smooth else self.unit)

    def best_intercept(self, w_b: np.ndarray) -> float | None:
        """The best move of a free intercept at w_b, in units of scores, if the margins suffice to find it."""
        return None

    @property
    def _sampled(self) -> bool:
        """Whether the cache holds a random sample of the free rows (streamcut.oracles.dual.random_order)."""
        return self.accelerated

    def _least(self, ascent: Any) -> float:
        return LITTLE if self._sampled or len(self._caches) > 1 else LESS

    def _pass(self, ascent: Ascent, order: np.ndarray, places: np.ndarray, *now: Any) -> RowsDualPass:  # type: ignore[override]
        work = RowsDualPass(self._risk, self._grids, self.C, self._bias, ascent, order, places, *now, self._first)  # type: ignore[arg-type, call-arg]
        statistics, streams = self._runner.feed.data.manifest.statistics, None
        if self._streams > 1:
            streams = self._order.streams(statistics, self._streams, self.passes, self._seed)
        sample = (self.passes, self._seed) if self._sampled else None
        if self._last is not None and (self._last.grids != self._grids or self._last.slot in (ascent.cut, ascent.dual)):
            self._last = None
        last = -1 if self._last is None else self._last.slot
        near, fetched = self._order.near(statistics), self._order.fetched(statistics, order)
        return replace(work, l1=self.penalty.threshold, streams=streams, sample=sample, near=near, fetched=fetched, last=last)

    def _complete(self, ascent: Ascent, sums: Any) -> None:
        (predicted, other), (b, other_b) = sums.cuts, sums.b
        if self._last is not None:
            vectors.add(predicted.reshape(-1), self._last.a.reshape(-1))
            b += self._last.b
        vectors.add(other.reshape(-1), predicted.reshape(-1))
        other_b += b
        self._last = _Last(ascent.cut, self._grids, predicted.copy(), b.copy())

    def follow(self, merges: Any) -> None:
        if self._last is not None and any(self._last.slot in (merge.into, merge.gone) for merge in merges):
            self._last = None
        super().follow(merges)

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        super().restore(numbers, fill)
        self._last = None

    def _at_once(self, ascent: Ascent, sums: Any) -> float:
        if not (self._solves and ascent.at_once):
            return 1.0
        w, caches = sums.w, cast("Mapping[int, LossCache]", self._caches)
        now = self.penalty.weights(w)  # the dual falls no faster than ½‖w + Δv‖², for any threshold
        solved = solve_cached(caches, now, ascent.w, self.C, self._bias, _CLOSE * ascent.enough)
        if not np.isfinite(vectors.dot(solved.delta, solved.delta) + vectors.dot(solved.point, solved.point) + solved.gain):
            return 0.0
        self.solved = solved.point if self.penalty.threshold is None else None
        theta, _ = self.penalty.step(w, solved.delta, solved.gain)
        vectors.move(w, w + solved.delta, theta)
        return theta


def write_back(
    runner: Runner, caches: Mapping[int, SweptCache], sums: Any, slot: Any, bias: float, grids: Grids, theta: Any
) -> None:
    """Write the dual variables of cached rows back, which changes `sums.cuts` and `sums.b`; see WriteBackPass."""
    shapes = sums.cuts.shape, sums.b.shape
    change, _ = runner.run(WriteBackPass(caches, slot, bias, grids, shapes, theta))
    vectors.add(sums.cuts.reshape(-1), change.cuts.reshape(-1))
    sums.b += change.b


def sweep_caches(
    runner: Runner,
    caches: Mapping[int, SweptCache],
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
