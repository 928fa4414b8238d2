"""The passes of `bundle-dca` as pure functions of a block of rows and its row state.

Row state: `z`, `z_b`, `u` as in streamcut.oracles.row_passes, and `codes` uint16 (rows, cuts): the share α_i / (C u_i) of
a row in each cut, by the cut's slot in the bundle (streamcut.compiled.dual).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.chunk import Chunk
from streamcut.compiled import dual, vectors
from streamcut.errors import CorruptError
from streamcut.execution.cache_passes import FillingPass
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import RowCache
from streamcut.execution.runner import Rows
from streamcut.losses.hinge import Hinge
from streamcut.oracles.row_passes import Totals
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
    """The running w′; both cuts (2, folds, D), their Σ u 1[z_c < 1] and Σ u f (2, 2) as [coarse, rest], both less those of the
    last pass and not divided by M; what the first pass learns."""

    w: np.ndarray
    cuts: np.ndarray
    b: np.ndarray = field(default_factory=lambda: np.zeros((2, 2)))
    totals: Totals | None = None
    limits: dict[int, float] = field(default_factory=dict)
    cache: RowCache | None = None


@dataclass(frozen=True, slots=True)
class DualPass(FillingPass):
    """Margins, predicted cut and a sweep of dual ascent; rows are offered to the lane's cache. `first` also fills `u`, sums it.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from row 0 of the data set. `last`: slots of the last pass's cuts, from which sums go on; −1: from nothing.
    """

    risk: Hinge
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
        now, codes, u, first_row = self.ascent, rows["codes"], rows.get("u"), chunk.first_row
        if sums.totals is not None:
            weights = np.empty(chunk.n_rows) if u is None else u
            weight = self.risk.weights(chunk.y, chunk.weight, self.grids.weight, weights)
            sums.totals.add(chunk, u, weight, self.bias, self.grids)
        keys = np.empty(chunk.n_rows)
        parts = np.rint(now.mixture * dual.MIXED).astype(np.uint64)
        room = np.empty(len(self.order)), np.empty(len(self.order), np.int64)
        csr = self._csr(rows, chunk)
        bad = dual.ascend(
            *csr, rows["z_b"], now.kappa, parts, self.C, self.bias, now.cut, now.dual, *self.last,
            self.grids, now.visits, self.order, self.places, first_row % self.alignment,
            now.w, sums.w, sums.cuts, rows["z"], codes, keys, sums.b, *room,
        )  # fmt: skip
        if bad >= 0:
            raise CorruptError(f"row {first_row + bad + 1}: its score is not finite; run `streamcut check --read-data`")
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, keys)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        csr, codes = self._csr(rows, chunk), rows["codes"]

        def offered(first: int, *room) -> tuple[int, int]:
            return dual.offer(first, *csr, keys, codes, self.ascent.dual, self.bias, chunk.first_row, *room)

        cache.fill(offered, chunk.n_rows)

    def _csr(
        self, rows: Rows, chunk: Chunk
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray, float, np.ndarray | None]:
        return chunk.indptr, chunk.indices, chunk.data, chunk.y, self.risk.positive, rows.get("u")

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


@dataclass(frozen=True, slots=True)
class MergePass(Pass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            dual.merge_shares(rows["codes"], merge.into, merge.gone, merge.share)
