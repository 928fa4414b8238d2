"""What bundle-dca sees of one class against the rest: two cuts a pass for every class at work.

Row state: that of streamcut.execution.rest_passes, and `codes` uint16 (cuts, K): the share of a row in each cut of each class, by
the cut's slot in the class's bundle (streamcut.passes.rest_dual).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.chunk import Chunk
from streamcut.errors import CorruptError
from streamcut.execution.cache_passes import FillingPass, Step, SweepPass
from streamcut.execution.dual_oracle import settle
from streamcut.execution.joined_rows import joined_bytes
from streamcut.execution.linear_passes import Grids, RowPass
from streamcut.execution.multiclass_passes import targets
from streamcut.execution.oracle import Cut
from streamcut.execution.rest_cache import RestCache
from streamcut.execution.rest_oracle import RestOracle, by_class, side_by_side
from streamcut.execution.row_cache import CacheSize, RowCache
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest, Statistics
from streamcut.passes import rest_dual, vectors
from streamcut.risks.crammer_singer import CrammerSinger

_VISITS = 2  # steps for each pair of a group while it is in cache, as long as it is free
_GROUP_NNZ = 1 << 17  # rows of a group stay in the second cache level while they are visited in random order
_GROUP_ROWS = 8192
_BATCH = 8  # groups that are visited in random order; their rows are in memory at once


def group_rows(statistics: Statistics) -> int:
    """Rows that are visited in random order among themselves; it depends on the whole data, not on shards."""
    return min(max(1, _GROUP_NNZ * statistics.n_rows // max(statistics.nnz, 1)), _GROUP_ROWS, statistics.n_rows)


def room_bytes(manifest: Manifest, classes: int) -> int:
    """Memory that a worker needs for the group at work, and for the rows of a batch that lie in different shards."""
    group = group_rows(manifest.statistics)
    return 8 * group * (classes + 2) + joined_bytes(manifest, _BATCH * group)


@dataclass(frozen=True, slots=True)
class RestAscent:
    """Where a pass starts, for the A classes `active` of K: `w` (D, A), and the mixtures (cuts, K) of the rows' shares behind it.

    cut, dual  (A) slots of both cuts of the pass; last (2, A): those of the last pass's, from which sums go on; −1: from nothing
    kappa      (A) the predicted cut is at w_b + κ(w − w_b)
    enough     (A) sweeps over cached rows end when one brings no more than this (units of F)
    """

    active: np.ndarray
    w: np.ndarray
    mixture: np.ndarray
    cut: np.ndarray
    dual: np.ndarray
    last: np.ndarray
    kappa: np.ndarray
    enough: np.ndarray


@dataclass(slots=True)
class RestDualSums:
    """The running w′ (D, A), None when it is of no more use; both cuts (D, 2 A) and their Σ u f (2 A), less those of the last
    pass, not divided by M; Σ u.
    """

    w: np.ndarray | None
    cuts: np.ndarray
    b: np.ndarray
    weight: float = 0.0
    limits: dict[int, float] = field(default_factory=dict)
    cache: RowCache | None = None


class RestDualOracle(RestOracle):
    """A RestOracle that also does dual coordinate ascent.

    Rows remember their shares in `max_cuts` cuts of each class. Every lane has a cache of `size` (None: none), which is swept at
    most `sweeps` times after each pass.
    """

    def __init__(
        self,
        runner: PassRunner,
        risk: CrammerSinger,
        *,
        C: float,
        bias: float,
        max_cuts: int,
        size: CacheSize | None,
        sweeps: int,
    ) -> None:
        super().__init__(runner, risk, C=C, bias=bias)
        runner.row_state.add("codes", np.uint16, (max_cuts, risk.classes))
        self._caches: dict[int, RestCache] = {}
        if size is not None and sweeps > 0:
            self._caches = {start: RestCache(size, risk.classes) for start in runner.lanes.bounds[:-1]}
        self._limits = dict.fromkeys(self._caches, np.inf)  # of the last whole pass: one that is broken off leaves nothing behind
        self._group, self._sweeps = group_rows(runner.feed.data.manifest.statistics), sweeps
        self._last = np.full((2, risk.classes), -1)  # slots of the cuts of each class whose sums are known
        self._sums: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # of the last pass: classes, cuts, their Σ u f

    def ascend_all(
        self, w: list[np.ndarray], mixtures: list[np.ndarray], slots: np.ndarray, kappa: np.ndarray, enough: np.ndarray,
        *, first: bool = False,
    ) -> list[tuple[Cut, Cut]]:  # fmt: skip
        """One pass for the active classes: the margins of their w, and two cuts of each: the predicted one, the ascent's.

        `mixtures` (cuts,) are of the shares that each w is made of, `slots` (2, A) those of the cuts. Each cut is summed from its
        shares alone, whose bounds the kernels keep: valid whatever rows remembered. `first` sets `total_weight`.
        """
        mixture = np.zeros((len(mixtures[0]), self._risk.classes))
        mixture[:, self.active] = np.stack(mixtures, axis=1)
        overwritten = (self._last[:, None, self.active] == slots).any(axis=(0, 1))
        self._last[:, self.active[overwritten]] = -1
        last = self._last[:, self.active]
        ascent = RestAscent(self.active, side_by_side(w), mixture, slots[0], slots[1], last, kappa, enough)
        rng = np.random.default_rng(self.passes)
        order, places = rng.permutation(self._group), rng.permutation(_BATCH)
        common = self._risk, self._grids, self.C, self._bias
        sums = self._read(RestDualPass(*common, ascent, order, places, self._caches, self._limits, first))
        if self._sums is not None:
            self._go_on_from_last(last, sums)
        if first:
            self.total_weight = sums.weight
        if self._caches:
            self._limits = sums.limits
            self._sweep(ascent, sums)
        self._last[:, self.active] = slots
        self._sums = self.active, sums.cuts, sums.b
        M, A = self.total_weight, len(w)
        cuts = [Cut(a, float(b / M)) for a, b in zip(by_class(sums.cuts, M), sums.b, strict=True)]
        return list(zip(cuts[:A], cuts[A:], strict=True))

    def follow_all(self, merges: list[list[Merge]]) -> None:
        """Rows' shares follow the merges in the bundles of the active classes. The data is not read."""
        flat = [(int(k), merge) for k, own in zip(self.active, merges, strict=True) for merge in own]
        for k, merge in flat:
            if merge.into in self._last[:, k]:
                self._last[:, k] = -1
        if flat:
            self._runner.run(RestMergePass(flat))

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        return {**numbers, "cache_limits": list(self._limits.values())}, arrays

    def restore(self, numbers: dict[str, Any], fill: Callable[[str, np.ndarray, Callable[[], None]], None]) -> None:
        super().restore(numbers, fill)
        self._last[:] = -1
        self._limits = dict(zip(self._caches, numbers["cache_limits"], strict=True))

    def _go_on_from_last(self, last: np.ndarray, sums: RestDualSums) -> None:
        """Add the last pass's sums to `sums`, which are the differences to them where `last` says so."""
        assert self._sums is not None
        before, cuts, b = self._sums
        at = np.searchsorted(before, self.active)
        columns = np.where(last >= 0, np.stack([at, at + len(before)]), -1).ravel()
        rest_dual.add_columns(cuts, columns, sums.cuts)
        rest_dual.add_columns(b[None], columns, sums.b[None])

    def _sweep(self, ascent: RestAscent, sums: RestDualSums) -> None:
        """At most `sweeps` over the cached rows of all lanes at once, each followed by an exact step of every class.

        A class ends when a sweep brings it no more than `enough` (streamcut.execution.dual_oracle.sweep_caches).
        """
        assert sums.w is not None
        A = len(ascent.active)
        products, at_work, theta = np.empty((2, A)), np.arange(A), np.ones(A)
        for number in range(self._sweeps):
            work = RestSweepPass(self._caches, sums.w, self.C, self._bias, self.passes, number, theta, at_work)
            step, _ = self._runner.run(work)
            rest_dual.line_products(sums.w, step.delta, products)
            slope, curvature = step.gain - products[0], products[1]
            theta = np.ones(A)  # nothing is taken back of a class that did not move
            moved = curvature > 0.0
            theta[moved] = np.clip(slope[moved] / curvature[moved], 0.0, 1.0)
            rest_dual.move(sums.w, step.delta, theta)
            at_work = at_work[(theta * (slope - 0.5 * theta * curvature) > ascent.enough)[at_work]]
            if len(at_work) == 0:
                break
        settle(self._runner, self._caches, sums, ascent.dual, self._bias, self._grids, theta)


@dataclass(frozen=True, slots=True)
class RestDualPass(FillingPass):
    """Margins, predicted cuts, a sweep of dual ascent; rows are offered to the lane's cache. `first` fills `t`, `u`, and sums u.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from row 0 of the data set.
    """

    risk: CrammerSinger
    grids: Grids
    C: float
    bias: float
    ascent: RestAscent
    order: np.ndarray
    places: np.ndarray
    caches: Mapping[int, RestCache]  # by the first row of the lane
    limits: Mapping[int, float]
    first: bool
    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True

    @property
    def alignment(self) -> int:
        """Blocks hold whole batches."""
        return len(self.order) * len(self.places)

    def begin(self) -> RestDualSums:
        D, A = self.ascent.w.shape
        return RestDualSums(self.ascent.w.copy(), np.zeros((D, 2 * A)), np.zeros(2 * A))

    def visit(self, sums: RestDualSums, rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        assert sums.w is not None
        now, codes, u, first_row, z = self.ascent, rows["codes"], chunk.weight, chunk.first_row, rows["z"]
        A, K, group = len(now.active), self.risk.classes, len(self.order)
        if self.first:
            sums.weight += float(chunk.n_rows) if u is None else self.grids.weight_sum(u)
            rows["t"][:] = targets(self.risk, chunk)
            if "u" in rows:
                rows["u"][:] = u
        slots, keys = np.flatnonzero(now.mixture.any(axis=1)), np.empty(chunk.n_rows)
        parts = now.mixture[slots] / np.float64(rest_dual.ONE) ** 2
        csr, target = (chunk.indptr, chunk.indices, chunk.data), rows["t"]
        bad = rest_dual.ascend(
            *csr, target, now.active, u, rows["z_b"], now.kappa, slots, parts, self.C, self.bias, now.cut, now.dual, now.last,
            self.grids.vector, self.grids.weight, _VISITS, self.order, self.places, first_row % self.alignment,
            now.w, sums.w, sums.cuts, z, codes, keys, sums.b,
            np.empty((group, A)), np.empty(group, np.int64), np.empty(group, np.int64), np.empty(K), np.empty(A),
            np.empty(2 * A, np.int64), np.empty(2 * A), np.empty(2 * A),
        )  # fmt: skip
        if bad >= 0:
            raise CorruptError(f"row {first_row + bad + 1}: a score is not finite; run `streamcut check --read-data`")
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, keys)

    def enter(self, sums: Any, first_row: int) -> None:
        FillingPass.enter(self, sums, first_row)
        if self.caches:
            sums.cache.serve(self.ascent.active)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        csr, now = (chunk.indptr, chunk.indices, chunk.data, rows["t"], self.ascent.active, chunk.weight, rows["z"]), self.ascent
        codes = rows["codes"]

        def offered(first: int, *room) -> tuple[int, int]:
            return rest_dual.offer(first, *csr, keys, codes, now.dual, self.bias, chunk.first_row, *room)

        cache.fill(offered, chunk.n_rows)

    def finish(self, sums: RestDualSums, rows: Rows, first_row: int) -> None:
        """Without caches the running w′ of a lane are of no use to others: cuts come from shares alone."""
        FillingPass.finish(self, sums, rows, first_row)
        if not self.caches:
            sums.w = None

    def merge(self, total: RestDualSums, part: RestDualSums) -> RestDualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        if total.w is not None:
            assert part.w is not None
            vectors.add(total.w.reshape(-1), part.w.reshape(-1))
            total.w -= self.ascent.w  # now w′ and the steps of all lanes
        total.b += part.b
        total.weight += part.weight
        total.limits |= part.limits
        return total


@dataclass(frozen=True, slots=True)
class RestSweepPass(SweepPass):
    """A SweepPass of the classes in columns `at_work`."""

    at_work: np.ndarray
    caches: Mapping[int, RestCache]

    def finish(self, step: Step, rows: Rows, first_row: int) -> None:
        self.caches[first_row].at_work = self.at_work
        SweepPass.finish(self, step, rows, first_row)


@dataclass(frozen=True, slots=True)
class RestMergePass(RowPass):
    """The rows' shares follow the merges in the bundles of classes; the data is not read."""

    merges: list[tuple[int, Merge]]

    def begin(self) -> None:
        return None

    def visit(self, nothing: None, rows: Rows, chunk: Chunk | None) -> None:
        classes, into, gone = (np.array(x) for x in zip(*((k, m.into, m.gone) for k, m in self.merges), strict=True))
        rest_dual.merge_shares(rows["codes"], classes, into, gone, np.array([merge.share for _, merge in self.merges]))

    def merge(self, total: None, part: None) -> None:
        return None
