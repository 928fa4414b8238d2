"""What `bundle-dca` sees of data with K classes: two cuts a pass.

Row state: that of streamcut.oracles.crammer_singer_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.compiled.multiclass_dual).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import BundleSize, Merge
from streamcut.chunk import Chunk
from streamcut.compiled import multiclass_dual, shares, vectors
from streamcut.errors import CorruptError
from streamcut.execution.cache_passes import FillingPass
from streamcut.execution.row_cache import CacheSize, RowCache
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.crammer_singer_passes import fill
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.crammer_singer_cache import ClassesCache
from streamcut.oracles.dual.passes import Ascent
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.row_passes import RowPass, Totals
from streamcut.rounding import Grids

_VISITS = 5  # steps for each row of a group while it is in cache, as long as its share is divided
_VISITS_CACHED = 2  # where sweeps over cached rows follow
# Rows of a group stay in the last cache level; an eighth of it takes news20 from 45 passes to 60.
ORDER = RandomOrder(nnz=1 << 19, batch=4)


class MulticlassDualOracle(DualAscent, MulticlassOracle):
    """A multiclass oracle that also does dual coordinate ascent.

    Cuts are Σ_i Σ_k π_ik ((e_k − e_{y_i}) x_iᵀ, 1) over k ≠ y_i with π_ik ≥ 0, Σ_k π_ik ≤ u_i / M. Rows remember their shares in
    `cuts`, which may grow. Every lane has a cache of `size` (None: none), which is swept at most `sweeps` times after each pass.
    """

    def __init__(
        self,
        runner: PassRunner,
        risk: CrammerSinger,
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
        caches: dict[int, ClassesCache] = {}
        if size is not None and sweeps > 0:
            caches = {start: ClassesCache(size, risk.classes) for start in runner.lanes.bounds[:-1]}
        group = ORDER.group_rows(runner.feed.data.manifest.statistics)
        more = {"group": group, "batch": ORDER.batch, "sweeps": sweeps, "seed": seed}
        self.prepare(self._pass, MergePass, caches, cuts=cuts.first, **more)

    def _pass(self, *now: Any) -> DualPass:
        return DualPass(self._risk, self._grids, self.C, self._bias, *now)


@dataclass(slots=True)
class DualSums:
    """The running W flat, None when it is of no more use; both cuts (2, D, K) and their Σ u (1 − p_t) (2, 1), less those of the
    last pass, not divided by M; what the first pass learns. With A classes against the rest W (D, A), cuts (D, 2 A), Σ u f (2 A).
    """

    w: np.ndarray | None
    cuts: np.ndarray
    b: np.ndarray = field(default_factory=lambda: np.zeros((2, 1)))
    totals: Totals | None = None
    limits: dict[int, float] = field(default_factory=dict)
    cache: RowCache | None = None


@dataclass(frozen=True, slots=True)
class DualPass(FillingPass):
    """Scores, predicted cut and a sweep of dual ascent; rows are offered to the lane's cache. `first` fills `t`, `u`, and sums u.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from row 0 of the data set. `last`: slots of the last pass's cuts, from which sums go on; −1: from nothing.
    """

    risk: CrammerSinger
    grids: Grids
    C: float
    bias: float
    ascent: Ascent
    order: np.ndarray
    places: np.ndarray
    last: tuple[int, int]
    caches: Mapping[int, ClassesCache]  # by the first row of the lane
    limits: Mapping[int, float]
    first: bool
    interruptible: ClassVar[bool] = True

    @property
    def alignment(self) -> int:
        """Blocks hold whole batches."""
        return len(self.order) * len(self.places)

    def begin(self) -> DualSums:
        K = self.risk.classes
        D = len(self.ascent.w) // K
        return DualSums(self.ascent.running.copy(), np.zeros((2, D, K)), totals=Totals.nothing(D) if self.first else None)

    def visit_chunk(self, sums: DualSums, rows: Rows, chunk: Chunk) -> None:
        assert sums.w is not None
        now, codes, u, first_row, K = self.ascent, rows["codes"], chunk.weight, chunk.first_row, self.risk.classes
        if sums.totals is not None:
            sums.totals.add(chunk, u, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)
        slots, visits = np.flatnonzero(now.mixture), _VISITS_CACHED if self.caches else _VISITS
        parts = now.mixture[slots] / np.float64(shares.ONE) ** 2
        csr, target, keys = (chunk.indptr, chunk.indices, chunk.data), rows["t"], np.empty(chunk.n_rows)
        bad = multiclass_dual.ascend(
            *csr, target, u, rows["z_b"], now.kappa, slots, parts, self.C, self.bias, now.cut, now.dual, *self.last,
            self.grids.vector, self.grids.weight, visits, self.order, self.places, first_row % self.alignment,
            now.w.reshape(-1, K), sums.w.reshape(-1, K), sums.cuts, rows["z"], codes, keys, sums.b.reshape(-1),
            np.empty((len(self.order), K)), np.empty(len(self.order), np.int64),
            np.zeros(K, np.uint16), np.empty(K), np.empty(K), np.empty(K), np.empty(K, np.int64),
        )  # fmt: skip
        if bad >= 0:
            raise CorruptError(f"row {first_row + bad + 1}: a score is not finite; run `streamcut check --read-data`")
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, keys)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        assert isinstance(cache, ClassesCache)
        cache.collect(chunk, rows["t"], keys, self.bias, rows["t"], rows["codes"], self.ascent.dual)

    def finish(self, sums: DualSums, rows: Rows, first_row: int) -> None:
        """Without caches the running W of a lane is of no use to others: cuts come from shares alone."""
        FillingPass.finish(self, sums, rows, first_row)
        if not self.caches:
            sums.w = None

    def merge(self, total: DualSums, part: DualSums) -> DualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        if total.w is not None:
            assert part.w is not None
            vectors.add(total.w.reshape(-1), part.w.reshape(-1))
            total.w -= self.ascent.running  # now W′ and the steps of all lanes
        total.b += part.b
        if total.totals is not None:
            assert part.totals is not None
            total.totals.merge(part.totals)
        total.limits |= part.limits
        return total


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            multiclass_dual.merge_shares(rows["codes"], merge.into, merge.gone, merge.share)
