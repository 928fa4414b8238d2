"""What `bundle-dca` sees of the data: two cuts a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import BundleSize, Merge
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.compiled import vectors
from streamcut.execution.cache_passes import SweepPass, WriteBackPass
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import CacheSize, RowCache
from streamcut.execution.runner import PassRunner
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.checkpoint import Fill
from streamcut.oracles.decomposable import Cut, DecomposableOracle, LinearOracle
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.oracles.dual.passes import Ascent, MergePass, RowsDualPass
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.rounding import Grids

# Rows of a group stay in the second cache level.
ORDER = RandomOrder(nnz=1 << 16, batch=32, within=False)


class DualAscent(DecomposableOracle):
    """What oracles of dual coordinate ascent share: passes that take two cuts, summed from what changed, and caches.

    Rows remember their shares in the cuts of the bundle: the row state's `codes`.
    """

    def prepare(
        self, work: Callable[..., Pass], merging: Callable[[list[Merge]], Pass], caches: Mapping[int, RowCache], *,
        cuts: int, order: RandomOrder, sweeps: int, seed: int,
    ) -> None:  # fmt: skip
        """`work(ascent, order, places, last, caches, limits, first)` and `merging(merges)` are the passes of the loss.

        Rows remember their shares in `cuts` cuts at first, and are visited in the `order` that `seed` draws. `caches`, by the
        first row of their lane, are swept at most `sweeps` times after each pass.
        """
        self._order, self._seed = order, seed
        self._work, self._merging, self._caches, self.cuts = work, merging, caches, cuts
        self._sweeps, self._goes_on = sweeps, True
        self._last: tuple[int, int] | None = None  # slots of the cuts whose sums are known, while rows remember their shares
        self._sums: Any = None  # of that pass
        self._limits = dict.fromkeys(caches, np.inf)  # of the last whole pass: one that is broken off leaves nothing behind

    def ascend(self, ascent: Ascent, *, first: bool = False) -> tuple[Cut, Cut]:
        """One pass: the scores of w, the predicted cut, and the cut of the shares after a sweep; `first` sets `total_weight`.

        Each is summed from its shares alone, whose bounds the kernels keep: valid for any stored shares.
        """
        order, places = self._order.drawn(self._runner.feed.data.manifest.statistics, self.passes, self._seed)
        if self._last is not None and {ascent.cut, ascent.dual} & set(self._last):
            self._last = None
        sums = self._read(self._work(ascent, order, places, self._last or (-1, -1), self._caches, self._limits, first))
        if self._last is not None:
            vectors.add(sums.cuts.reshape(-1), self._sums.cuts.reshape(-1))
            sums.b += self._sums.b
        if first:
            self._learn(sums.totals)
        self._scored(ascent.w)
        if self._caches:
            self._limits = sums.limits
            self._sweep(ascent, sums)
        sums.w = None
        if self._goes_on:
            self._last, self._sums = (ascent.cut, ascent.dual), sums
        predicted, swept = (
            self._divided(a.reshape(self._grids.folds, -1).copy(), b) for a, b in zip(sums.cuts, sums.b, strict=True)
        )
        if first and self.tighten():
            self._last = None
        return predicted, swept

    def refine(self) -> bool:
        """As that of DecomposableOracle; sums go on from no others."""
        found = super().refine()
        if found:
            self._last = None
        return found

    def follow(self, merges: list[Merge]) -> None:
        """Rows' shares follow the bundle's merges. The data is not read."""
        if self._last is not None and any(merge.into in self._last for merge in merges):
            self._last = None
        if merges:
            self._runner.run(self._merging(merges))

    def widen(self, cuts: int) -> None:
        """Rows keep their dual variables in this number of cuts from now on. The data is not read."""
        if cuts > self.cuts:
            self._runner.row_state.widen("codes", cuts)
            self.cuts = cuts

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        return {**numbers, "cache_limits": list(self._limits.values()), "cuts": self.cuts}, arrays

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        self.widen(numbers["cuts"])
        super().restore(numbers, fill)
        self._last = None
        self._limits = dict(zip(self._caches, numbers["cache_limits"], strict=True))

    def _sweep(self, ascent: Ascent, sums: Any) -> None:
        common = self._runner, self._caches
        seed = self.passes, self._seed
        theta = sweep_caches(*common, sums.w, self.C, self.penalty, self._bias, seed, self._sweeps, ascent.enough)
        write_back(self._runner, self._caches, sums, ascent.dual, self._bias, self._grids, theta)


class DualOracle(DualAscent, LinearOracle):
    """A linear oracle that also does dual coordinate ascent: its cuts are sums of the rows' shares of the dual.

    Rows remember their shares in `cuts`, which may grow. Every lane has a cache of `size` (None: none), which is swept at most
    `sweeps` times after each pass.
    """

    planes: ClassVar[bool] = True

    def __init__(
        self, runner: PassRunner, risk: PointwiseRisk, *,
        C: float, bias: float, cuts: BundleSize, size: CacheSize | None, sweeps: int, seed: int = 0, penalty: L2 = SQUARES,
    ) -> None:  # fmt: skip
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, penalty=penalty, planes=True)
        loss = risk.loss
        runner.row_state.add("codes", loss.code_type, (cuts.first,), most=cuts.most)
        caches = {} if size is None or sweeps == 0 else {start: LossCache(size, loss) for start in runner.lanes.bounds[:-1]}
        merging = partial(MergePass, loss)
        self.prepare(self._pass, merging, caches, cuts=cuts.first, order=ORDER, sweeps=sweeps, seed=seed)
        self._goes_on = loss.incremental

    def _pass(self, *now: Any) -> RowsDualPass:
        work = RowsDualPass(self._risk, self._grids, self.C, self._bias, *now, self._first)  # type: ignore[call-arg]
        return replace(work, l1=self.penalty.threshold)


def write_back(
    runner: PassRunner, caches: Mapping[int, RowCache], sums: Any, slot: Any, bias: float, grids: Grids, theta: Any
) -> None:
    """Write the dual variables of cached rows back, which changes `sums.cuts` and `sums.b`; see WriteBackPass."""
    shapes = sums.cuts.shape, sums.b.shape
    change, _ = runner.run(WriteBackPass(caches, slot, bias, grids, shapes, theta))
    vectors.add(sums.cuts.reshape(-1), change.cuts.reshape(-1))
    sums.b += change.b


def sweep_caches(
    runner: PassRunner,
    caches: Mapping[int, RowCache],
    w: np.ndarray,
    C: float,
    penalty: L2,
    bias: float,
    seed: tuple[int, int],
    sweeps: int,
    enough: float,
) -> float:
    """At most `sweeps` over the cached rows of all lanes at once, each followed by an exact step between before and after.

    w (v, where the penalty has a threshold) moves in place. Lanes that sweep without seeing each other go too far together; along
    the sum of their steps the dual is a parabola, or pieces of some. Ends when a sweep brings no more than `enough`. Returns the
    part of the last step that was taken.
    """
    theta = 1.0
    for number in range(sweeps):
        step, _ = runner.run(SweepPass(caches, w, C, penalty.threshold, bias, seed, number, theta))
        theta, rise = penalty.step(w, step.delta, step.gain)
        vectors.move(w, w + step.delta, theta)
        if rise <= enough:
            break
    return theta
