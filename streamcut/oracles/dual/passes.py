"""The passes of `bundle-dca` as pure functions of a block of rows and its row state.

Row state: `z`, `z_b`, `u`, `target` as in streamcut.oracles.row_passes, and `codes` (rows, cuts): the share α_i / (C u_i) of a
row in each cut, by the cut's slot in the bundle, as a code of the loss's choosing (streamcut.losses.codes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.chunk import Chunk
from streamcut.compiled import dual, records, vectors
from streamcut.errors import CorruptError
from streamcut.execution.cache_passes import FillingPass
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import RowCache
from streamcut.execution.runner import Rows
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.row_passes import Totals, begin
from streamcut.rounding import Grids


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a pass starts: `w`, and the mixture (cuts,) of the rows' shares that it is made of; both cuts' slots; κ.

    enough  sweeps over cached rows end when one brings no more than this (units of F)
    start   where the running w′ starts if not at w: what the mixture of shares amounts to
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


@dataclass(slots=True)
class DualSums:
    """The running w′; both cuts (2, folds, D) and their constants with what measures their rounding (2, 4), both less those of
    the last pass and not divided by M; what the first pass learns."""

    w: np.ndarray
    cuts: np.ndarray
    b: np.ndarray = field(default_factory=lambda: np.zeros((2, 4)))
    totals: Totals | None = None
    limits: dict[int, float] = field(default_factory=dict)
    cache: RowCache | None = None


@dataclass(frozen=True, slots=True)
class DualPass(FillingPass):
    """Margins, predicted cut and a sweep of dual ascent; rows are offered to the lane's cache. `first` also fills `u`, sums it.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from row 0 of the data set. `last`: slots of the last pass's cuts, from which sums go on; −1: from nothing.
    """

    risk: PointwiseRisk
    grids: Grids
    C: float
    bias: float
    ascent: Ascent
    order: np.ndarray
    places: np.ndarray
    last: tuple[int, int]
    caches: Mapping[int, RowCache]  # by the first row of the lane
    limits: Mapping[int, float]
    first: bool
    interruptible: ClassVar[bool] = True

    @property
    def alignment(self) -> int:
        """Blocks hold whole batches."""
        return len(self.order) * len(self.places)

    def begin(self) -> DualSums:
        D = len(self.ascent.w)
        totals = Totals.nothing(D) if self.first else None
        return DualSums(self.ascent.running.copy(), np.zeros((2, self.grids.folds, D)), totals=totals)

    def visit_chunk(self, sums: DualSums, rows: Rows, chunk: Chunk) -> None:
        now, loss, first_row = self.ascent, self.risk.loss, chunk.first_row
        if sums.totals is not None:
            begin(rows, chunk, self.risk, self.bias, self.grids, sums.totals)
        keys = np.empty(chunk.n_rows)
        bad = dual.ascend(
            loss,
            _records(rows, chunk),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w, now.kappa, loss.parts(now.mixture), self.C, self.bias),
            records.Slots(now.cut, now.dual, *self.last),
            self.grids,
            records.Visits(self.order, self.places, first_row % self.alignment, now.visits),
            records.DualSums(sums.w, sums.cuts, sums.b),
            records.Scratch(np.empty(len(self.order)), np.empty(len(self.order), np.int64)),
        )
        if bad >= 0:
            raise CorruptError(f"row {first_row + bad + 1}: its score is not finite; run `streamcut check --read-data`")
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, keys)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        taken, codes, slot = _records(rows, chunk), rows["codes"], self.ascent.dual

        def offered(first: int, *room) -> tuple[int, int]:
            return dual.offer(self.risk.loss, first, taken, keys, codes, slot, self.bias, chunk.first_row, *room)

        cache.fill(offered, chunk.n_rows)

    def merge(self, total: DualSums, part: DualSums) -> DualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        vectors.add(total.w, part.w)
        total.w -= self.ascent.running  # now w′ and the steps of all lanes
        total.b += part.b
        if total.totals is not None:
            assert part.totals is not None
            total.totals.merge(part.totals)
        total.limits |= part.limits
        return total


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
