"""The oracle of `bundle-dca` for K classes: two cuts a pass.

Row state: that of streamcut.oracles.classes_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.compiled.multiclass_dual).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.compiled import cached_rows, multiclass_dual, records, shares
from streamcut.execution.row_cache import ROW_BYTES, CacheSize, RowCache, SweptCache
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.joint import JointLoss
from streamcut.oracles.classes import MulticlassOracle
from streamcut.oracles.classes_passes import fill
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.dual_pass import DualPass, DualSums
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.worth import LESS, LITTLE
from streamcut.oracles.row_passes import RowPass, Totals

_VISITS = 5  # while a row's share is divided
_VISITS_CACHED = 2  # where sweeps over cached rows follow
# Rows of a group stay in the last cache level; an eighth of it takes news20 from 45 passes to 60.
ORDER = RandomOrder(nnz=1 << 19, batch=4)


def row_bytes(classes: int) -> int:
    """Bytes of a cached row in addition to its entries: its class, and its shares before and after a sweep."""
    return ROW_BYTES + 8 + 16 * classes


def class_buffers(classes: int) -> records.ClassBuffers:
    """Work arrays of kernels."""
    return records.ClassBuffers(np.empty(classes), np.empty(classes), np.empty(classes), np.empty(classes, np.int64))


class ClassesCache(SweptCache):
    """Rows with a share for each of `classes`; w is (D, K) flat, sums are (2, D, K)."""

    def __init__(self, size: CacheSize, loss: JointLoss) -> None:
        super().__init__(size)
        self._loss, classes = loss, loss.classes
        self._goal = np.empty(size.rows, np.int64)
        self._share, self._before = np.empty((size.rows, classes)), np.empty((size.rows, classes))

    def collect(self, chunk: Chunk, target: np.ndarray, keys: np.ndarray, bias: float, *shares: Any) -> None:
        """Cache the rows of `chunk` with the smallest `keys` (n), with the shares that `remember` finds in `shares`."""
        rows = records.Rows(chunk.indptr, chunk.indices, chunk.data, target, chunk.weight)

        def offered(first: int, limit: float, n: int) -> tuple[int, int]:
            stop, count = cached_rows.offer(first, rows, keys, bias, chunk.first_row, limit, n, self._rows())
            self._remember(slice(n, count), self._number[n:count] - chunk.first_row, *shares)
            return stop, count

        self.fill(offered, chunk.n_rows)

    def _rows(self) -> records.CachedRows:
        csr = self._indptr, self._indices, self._data
        return records.CachedRows(*csr, self._number, self._key, self._weight, self._square, self._share, self._goal)

    def _remember(self, part: slice, rows: np.ndarray, *shares: Any) -> None:
        """Copy the shares of `rows` of the block to `part` of the cache."""
        multiclass_dual.remember(rows, *shares, self._share[part])

    def _by_row(self) -> tuple[np.ndarray, ...]:
        return *super()._by_row(), self._goal

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        K, rows = self._loss.classes, self._rows()
        given = self._order, rows, C, bias, l1, self._slack, w.reshape(-1, K), class_buffers(K)
        return multiclass_dual.sweep(self._loss, *given)

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        changed, room = records.CutSums(cuts, sums.reshape(-1)), class_buffers(self._loss.classes)
        given = self._rows().part(part), first_row, slot, bias, grids, codes, changed
        multiclass_dual.write_back(self._loss, *given, np.empty(self._loss.classes, np.uint16), room)


@dataclass(frozen=True, slots=True)
class ClassesDualPass(DualPass):
    """A DualPass of a joint loss of all classes. `first` also fills `t` and `u`."""

    risk: ClassesRisk
    caches: Mapping[int, ClassesCache]  # by the first row of the lane
    l1: float | None = None  # the threshold of the penalty
    accelerated: bool = False

    @property
    def steps(self) -> int:
        """Steps per row of a group while it is in cache and may move."""
        return _VISITS_CACHED if self.caches or not self.risk.loss.bounded() else _VISITS

    def begin(self, first_row: int) -> DualSums:
        K = self.risk.classes
        D = len(self.ascent.w) // K
        totals = Totals.nothing(D) if self.first else None
        return DualSums(self.ascent.running.copy(), np.zeros((2, D, K)), np.zeros((2, 1)), totals, self.emptied(first_row))

    def learn(self, totals: Totals, rows: Rows, chunk: Chunk) -> None:
        totals.add(chunk, chunk.weight, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)

    def ascend(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:
        assert sums.w is not None
        now, K, size = self.ascent, self.risk.classes, len(self.order)
        slots = np.flatnonzero(now.mixture)
        mixture = records.Mixture(slots, now.mixture[slots] / np.float64(shares.ONE) ** 2)
        buffers = np.empty((size, K)), np.empty(size, np.int64), np.zeros(K, np.uint16)
        return multiclass_dual.ascend(
            self.risk.loss,
            records.Rows(chunk.indptr, chunk.indices, chunk.data, rows["t"], chunk.weight),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w.reshape(-1, K), now.kappa, mixture, self.C * now.stretch, self.bias, self.l1),
            records.Slots(now.cut, now.dual),
            self.grids,
            self.visits(self.steps),
            records.DualSums(sums.w.reshape(-1, K), sums.cuts, sums.b.reshape(-1)),
            records.ClassScratch(*buffers, class_buffers(K)),
        )

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        assert isinstance(cache, ClassesCache)
        cache.collect(chunk, rows["t"], keys, self.bias, rows["t"], rows["codes"], self.ascent.dual)

    def finish(self, sums: DualSums, rows: Rows, first_row: int) -> None:
        """Without caches the running W of a lane is dropped: cuts come from shares alone."""
        if not self.caches and not self.accelerated:
            sums.w = None


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    bounded: bool
    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes", "t")

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            multiclass_dual.merge_shares(self.bounded, rows["t"], rows["codes"], merge.into, merge.gone, merge.share)


class MulticlassDualOracle(DualAscent, MulticlassOracle):
    """A multiclass oracle that also does dual coordinate ascent.

    Cuts are Σ_i Σ_k π_ik ((e_k − e_{y_i}) x_iᵀ, 1) over k ≠ y_i with π_ik ≥ 0, Σ_k π_ik ≤ u_i / M, with
    the constants of the loss in place of the 1. Rows remember their shares in `cuts`. Every lane has a
    cache of `size` (None: none), which is swept at most `sweeps` times after each pass.
    """

    def __init__(
        self,
        runner: Runner,
        risk: ClassesRisk,
        *,
        C: float,
        bias: float,
        cuts: int,
        size: CacheSize | None,
        sweeps: int,
        seed: int = 0,
        penalty: L2 = SQUARES,
    ) -> None:
        super().__init__(runner, risk, C=C, bias=bias, penalty=penalty)
        runner.row_state.add("codes", np.uint16, (cuts, risk.classes))
        caches: dict[int, ClassesCache] = {}
        if size is not None and sweeps > 0:
            caches = {start: ClassesCache(size, risk.loss) for start in runner.lanes.bounds[:-1]}
        merging = partial(MergePass, risk.loss.bounded())
        self.prepare(merging, caches, cuts=cuts, order=ORDER, sweeps=sweeps, seed=seed)

    def _least(self, ascent: Any) -> float:
        return LITTLE if self.accelerated else LESS

    def _pass(self, *now: Any) -> ClassesDualPass:
        given = self._risk, self._grids, self.C, self._bias
        return ClassesDualPass(*given, *now, self.penalty.threshold, self.accelerated)  # type: ignore[arg-type, call-arg]
