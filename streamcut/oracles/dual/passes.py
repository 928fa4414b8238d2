"""The passes of `bundle-dca` as pure functions of a block of rows and its row state.

Row state: `z`, `z_b`, `u`, `target` as in streamcut.oracles.row_passes, and `codes` (rows, cuts): the share α_i / (C u_i) of a
row in each cut, by the cut's slot in the bundle, as a code of the loss's choosing (streamcut.losses.codes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.chunk import Chunk
from streamcut.compiled import dual, records
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import RowCache
from streamcut.execution.runner import Rows
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.dual.dual_pass import DualPass, DualSums
from streamcut.oracles.row_passes import First, Totals, begin


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a pass starts: `w`, and the mixture (cuts,) of the rows' shares that it is made of; both cuts' slots; κ.

    enough  sweeps over cached rows end when one brings no more than this (units of F)
    start   where the running w′ (v′, where the penalty has a threshold) starts if not at w: what the mixture of shares amounts to
    visits  steps for each row of a group while it is in cache, after the first as long as it is at no bound
    """

    w: np.ndarray
    mixture: np.ndarray
    cut: int
    dual: int
    kappa: float
    enough: float
    start: np.ndarray | None = None
    visits: int = 2

    @property
    def running(self) -> np.ndarray:
        """The w′ of the first row."""
        return self.w if self.start is None else self.start


@dataclass(frozen=True, slots=True)
class RowsDualPass(DualPass):
    """A DualPass of a loss of single rows. `first` also fills `u` and `target`."""

    risk: PointwiseRisk
    ascent: Ascent
    last: tuple[int, int]
    learning: First
    l1: float | None = None  # the threshold of the penalty

    def begin(self) -> DualSums:
        D = len(self.ascent.w)
        totals = Totals.nothing(D) if self.first else None
        return DualSums(self.ascent.running.copy(), np.zeros((2, self.grids.folds, D)), np.zeros((2, 4)), totals)

    def learn(self, totals: Totals, rows: Rows, chunk: Chunk) -> None:
        begin(rows, chunk, self.risk, self.bias, self.learning, totals)

    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        assert sums.w is not None
        now, loss = self.ascent, self.risk.loss
        return dual.ascend(
            loss,
            _records(rows, chunk),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w, now.kappa, loss.parts(now.mixture), self.C, self.bias, self.l1),
            records.Slots(now.cut, now.dual, *self.last),
            self.grids,
            self.visits(chunk, now.visits),
            records.DualSums(sums.w, sums.cuts, sums.b),
            records.Scratch(np.empty(len(self.order)), np.empty(len(self.order), np.int64)),
        )

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        taken, codes, slot = _records(rows, chunk), rows["codes"], self.ascent.dual

        def offered(first: int, *buffers) -> tuple[int, int]:
            return dual.offer(self.risk.loss, first, taken, keys, codes, slot, self.bias, chunk.first_row, *buffers)

        cache.fill(offered, chunk.n_rows)


def _records(rows: Rows, chunk: Chunk) -> records.Rows:
    return records.Rows(chunk.indptr, chunk.indices, chunk.data, chunk.y, rows.get("u"))


@dataclass(frozen=True, slots=True)
class MergePass(Pass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    loss: Loss
    merges: list[Merge]
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            dual.merge_shares(self.loss, rows["codes"], merge.into, merge.gone, merge.share)
