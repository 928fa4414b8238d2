"""What `bundle-dca` sees of data with K classes: two cuts a pass.

Row state: that of streamcut.oracles.crammer_singer_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.compiled.multiclass_dual).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.compiled import multiclass_dual, records, shares
from streamcut.execution.cache_passes import FillingPass
from streamcut.execution.row_cache import CacheSize, RowCache
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.foundation.chunk import Chunk
from streamcut.losses.classes import ClassesLoss
from streamcut.models.checkpoint import Fill
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.crammer_singer_passes import fill
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.crammer_singer_cache import ClassesCache, class_buffers
from streamcut.oracles.dual.dual_pass import DualPass, DualSums
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.worth import LESS, LITTLE
from streamcut.oracles.row_passes import RowPass, Totals

_VISITS = 5  # as long as a row's share is divided
_VISITS_CACHED = 2  # where sweeps over cached rows follow
_AT_ONCE = 1 << 14  # rows whose shares are checked between two releases of them
# Rows of a group stay in the last cache level; an eighth of it takes news20 from 45 passes to 60.
ORDER = RandomOrder(nnz=1 << 19, batch=4)


@dataclass(frozen=True, slots=True)
class ClassesDualPass(DualPass):
    """A DualPass of the Crammer-Singer loss. `first` also fills `t` and `u`. `kernels` are those of the loss."""

    kernels: ClassVar[Any] = multiclass_dual
    risk: ClassesLoss
    caches: Mapping[int, ClassesCache]  # by the first row of the lane
    l1: float | None = None  # the threshold of the penalty
    accelerated: bool = False

    @property
    def steps(self) -> int:
        """Steps for each row of a group while it is in cache, as long as it may move."""
        return _VISITS_CACHED if self.caches else _VISITS

    def begin(self) -> DualSums:
        K = self.risk.classes
        D = len(self.ascent.w) // K
        totals = Totals.nothing(D) if self.first else None
        return DualSums(self.ascent.running.copy(), np.zeros((2, D, K)), np.zeros((2, 1)), totals)

    def learn(self, totals: Totals, rows: Rows, chunk: Chunk) -> None:
        totals.add(chunk, chunk.weight, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)

    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        assert sums.w is not None
        now, K, size = self.ascent, self.risk.classes, len(self.order)
        slots = np.flatnonzero(now.mixture)
        mixture = records.Mixture(slots, now.mixture[slots] / np.float64(shares.ONE) ** 2)
        buffers = np.empty((size, K)), np.empty(size, np.int64), np.zeros(K, np.uint16)
        return self.kernels.ascend(
            records.Rows(chunk.indptr, chunk.indices, chunk.data, rows["t"], chunk.weight),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w.reshape(-1, K), now.kappa, mixture, self.C * now.stretch, self.bias, self.l1),
            records.Slots(now.cut, now.dual, *self.last),
            self.grids,
            self.visits(chunk, self.steps),
            records.DualSums(sums.w.reshape(-1, K), sums.cuts, sums.b.reshape(-1)),
            records.ClassScratch(*buffers, class_buffers(K)),
        )

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        assert isinstance(cache, ClassesCache)
        cache.collect(chunk, rows["t"], keys, self.bias, rows["t"], rows["codes"], self.ascent.dual)

    def finish(self, sums: DualSums, rows: Rows, first_row: int) -> None:
        """Without caches the running W of a lane is of no use to others: cuts come from shares alone."""
        FillingPass.finish(self, sums, rows, first_row)
        if not self.caches and not self.accelerated:
            sums.w = None


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            multiclass_dual.merge_shares(rows["codes"], merge.into, merge.gone, merge.share)


class MulticlassDualOracle(DualAscent, MulticlassOracle):
    """A multiclass oracle that also does dual coordinate ascent.

    Cuts are Σ_i Σ_k π_ik ((e_k − e_{y_i}) x_iᵀ, 1) over k ≠ y_i with π_ik ≥ 0, Σ_k π_ik ≤ u_i / M. Rows remember their shares in
    `cuts`. Every lane has a cache of `size` (None: none), which is swept at most `sweeps` times after each pass.

    dual_pass, merging, cache  the passes of the loss, and its row cache
    incremental                sums go on from those of the last pass
    """

    dual_pass: ClassVar[Any] = ClassesDualPass
    merging: ClassVar[Any] = MergePass
    cache: ClassVar[Any] = ClassesCache
    incremental: ClassVar[bool] = True

    def __init__(
        self,
        runner: PassRunner,
        risk: ClassesLoss,
        *,
        C: float,
        bias: float,
        cuts: int,
        size: CacheSize | None,
        sweeps: int,
        seed: int = 0,
        penalty: L2 = SQUARES,
    ) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, penalty=penalty)
        runner.row_state.add("codes", np.uint16, (cuts, risk.classes))
        caches: dict[int, ClassesCache] = {}
        if size is not None and sweeps > 0:
            caches = {start: self.cache(size, risk.classes) for start in runner.lanes.bounds[:-1]}
        self.prepare(self._pass, self.merging, caches, cuts=cuts, order=ORDER, sweeps=sweeps, seed=seed)
        self._goes_on = self.incremental and not self.shelf.far  # else no vectors stay from pass to pass

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        super().restore(numbers, fill)
        rows = self._runner.rows
        for start in range(0, len(rows["t"]), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            if not multiclass_dual.in_the_simplex(rows["t"][some], rows["codes"][some]):
                raise ValueError("array rows.codes holds shares that are not of the simplex")
            self.release()

    def _least(self, ascent: Any) -> float:
        return LITTLE if self.accelerated else LESS

    def _pass(self, *now: Any) -> ClassesDualPass:
        given = self._risk, self._grids, self.C, self._bias
        return self.dual_pass(*given, *now, self.penalty.threshold, self.accelerated)
