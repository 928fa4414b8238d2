"""What `bundle-dca` sees of data with K classes under the softmax loss: two cuts a pass.

Row state: that of streamcut.oracles.crammer_singer_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.compiled.softmax_dual).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import BundleSize, Merge
from streamcut.chunk import Chunk
from streamcut.compiled import records, shares, softmax_dual
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.losses.softmax import Softmax
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.crammer_singer import ORDER, ClassesDualPass
from streamcut.oracles.dual.crammer_singer_cache import ClassesCache, class_buffers
from streamcut.oracles.dual.dual_pass import DualSums
from streamcut.oracles.row_passes import RowPass
from streamcut.oracles.softmax import SoftmaxOracle
from streamcut.rounding import Grids


class SoftmaxDualOracle(DualAscent, SoftmaxOracle):
    """A softmax oracle that also does dual coordinate ascent.

    Cuts are those of points of the simplex, one for each row. Rows remember them in `cuts`, which may grow. Every lane has a
    cache of `size` (None: none), which is swept at most `sweeps` times after each pass.
    """

    def __init__(
        self,
        runner: PassRunner,
        risk: Softmax,
        *,
        C: float,
        bias: float,
        cuts: BundleSize,
        size: CacheSize | None,
        sweeps: int,
        seed: int = 0,
    ) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True)
        runner.row_state.add("codes", np.uint16, (cuts.first, risk.classes), most=cuts.most)
        caches: dict[int, SoftmaxCache] = {}
        if size is not None and sweeps > 0:
            caches = {start: SoftmaxCache(size, risk.classes) for start in runner.lanes.bounds[:-1]}
        self.prepare(self._pass, MergePass, caches, cuts=cuts.first, order=ORDER, sweeps=sweeps, seed=seed)
        self._goes_on = False

    def _pass(self, *now: Any) -> SoftmaxDualPass:
        return SoftmaxDualPass(self._risk, self._grids, self.C, self._bias, *now)


@dataclass(frozen=True, slots=True)
class SoftmaxDualPass(ClassesDualPass):
    """A DualPass of the softmax loss. `first` also fills `t` and `u`."""

    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        assert sums.w is not None
        now, K, size = self.ascent, self.risk.classes, len(self.order)
        slots = np.flatnonzero(now.mixture)
        mixture = records.Mixture(slots, now.mixture[slots] / np.float64(shares.ONE) ** 2)
        buffers = np.empty((size, K)), np.empty(size, np.int64), np.zeros(K, np.uint16)
        return softmax_dual.ascend(
            records.Rows(chunk.indptr, chunk.indices, chunk.data, rows["t"], chunk.weight),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w.reshape(-1, K), now.kappa, mixture, self.C, self.bias),
            records.Slots(now.cut, now.dual, *self.last),
            self.grids,
            self.visits(chunk, now.visits),
            records.DualSums(sums.w.reshape(-1, K), sums.cuts, sums.b.reshape(-1)),
            records.ClassScratch(*buffers, class_buffers(K)),
        )


class SoftmaxCache(ClassesCache):
    """Rows with a share for each class, which sweeps move by the softmax loss."""

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        K = self._classes
        gain = softmax_dual.sweep(self._order, self._rows(), C, bias, w.reshape(-1, K), class_buffers(K))
        return gain, len(self._order), 0.0

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        changed, buffers = records.CutSums(cuts, sums.reshape(-1)), class_buffers(self._classes)
        softmax_dual.write_back(self._rows().part(part), first_row, slot, bias, grids, codes, changed, buffers)


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes", "t")

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            softmax_dual.merge_shares(rows["t"], rows["codes"], merge.into, merge.gone, merge.share)
