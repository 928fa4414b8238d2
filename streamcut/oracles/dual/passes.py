"""The passes of `bundle-dca` as pure functions of a block of rows and its row state.

Row state: `z`, `z_b`, `u`, `target` as in streamcut.oracles.row_passes, and `codes` (rows, cuts): the share α_i / (C u_i) of a
row in each cut, by the cut's slot in the bundle, encoded as the loss prescribes (streamcut.losses.codes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.compiled import dual, records, vectors
from streamcut.execution.feed import Streams
from streamcut.execution.row_buffer import with_entries_of
from streamcut.execution.row_cache import FillingPass, RowCache
from streamcut.execution.runner import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.oracles.dual.random_order import sample_free
from streamcut.oracles.row_passes import First, RowPass, Totals, begin, require_finite


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a pass starts: `w`, and the mixture (cuts,) of the rows' shares behind it; both cuts' slots; κ.

    enough  sweeps over cached rows end when one gains no more than this (units of F)
    value   of the dual at the mixture, approximately
    start   where the running w′ (v′, where the penalty has a threshold) starts if not at w: the point of the mixture of shares
    visits  steps per row of a group while it is in cache, after the first only while it is at no bound
    stretch  steps are those for this times C, and so are `enough` and `value` (streamcut.solvers.acceleration)
    at_once  interior points solve for cached rows before sweeps, where features are few
    """

    w: np.ndarray
    mixture: np.ndarray
    cut: int
    dual: int
    kappa: float
    enough: float
    value: float = 0.0
    start: np.ndarray | None = None
    visits: int = 2
    stretch: float = 1.0
    at_once: bool = False

    @property
    def running(self) -> np.ndarray:
        """The w′ of the first row."""
        return self.w if self.start is None else self.start


class Scored(NamedTuple):
    """The state of a block before its steps: keys of its rows (n), and dual variables."""

    keys: np.ndarray
    scratch: records.Scratch


@dataclass(slots=True)
class DualSums:
    """The sums of a pass.

    w     the running w′ (D,), after the last lane with the steps of all lanes; None once it is no longer needed
    cuts  both cuts (2, folds, D), and b their constants (2, 4), not divided by M, with the sums that bound rounding
    """

    w: np.ndarray | None
    cuts: np.ndarray
    b: np.ndarray
    totals: Totals | None = None
    cache: LossCache | None = None


@dataclass(frozen=True, slots=True)
class RowsDualPass(FillingPass):
    """Scores, predicted cut and a visit of dual ascent; rows are offered to the lane's cache. `first` also sums the totals, and
    fills `u` and `target`.

    Rows are visited in groups of `len(order)` consecutive ones, each in that order, groups in batches of `len(places)`, in that
    order; both count from the first row of the block. With `streams` each block is a group.

    sample   random seed of a sample of the free rows, which caches take instead of the rows that will move least
    last     slot of the previous pass's predicted cut, whose known sums this one updates; −1: from 0
    known    other processes have scored the rows: `z` is there, and rows at rest may lack their entries
    """

    risk: PointwiseRisk
    grids: Grids
    C: float
    bias: float
    ascent: Ascent
    order: np.ndarray
    places: np.ndarray
    caches: Mapping[int, LossCache]  # by the first row of the lane
    learning: First
    first: bool
    _: KW_ONLY
    l1: float | None  # the threshold of the penalty
    streams: Streams | None  # type: ignore[assignment]
    sample: tuple[int, int] | None
    last: int
    near: int  # rows of a group scored and stepped at a time; 0: all
    fetched: np.ndarray | None  # the rows of `order`, ascending within each run of `near`
    known: bool = False
    scored_from: ClassVar[tuple[str, ...]] = ("z_b", "codes", "u")
    interruptible: ClassVar[bool] = True

    @property
    def together(self) -> int:
        """Blocks hold whole batches."""
        return len(self.order) * len(self.places)

    def begin(self, first_row: int) -> DualSums:
        D = len(self.ascent.w)
        totals = Totals.nothing(D) if self.first else None
        cuts = np.zeros((2, self.grids.folds, D))
        return DualSums(self.ascent.running.copy(), cuts, np.zeros((2, 4)), totals, self.emptied(first_row))

    def prepare(self, sums: DualSums, rows: Rows, chunk: Chunk) -> Scored:  # type: ignore[override]
        """Scores and the predicted cut."""
        if sums.totals is not None:
            begin(rows, chunk, self.risk, self.bias, self.learning, sums.totals)
        scored = Scored(np.empty(chunk.n_rows), self._scratch())
        require_finite(chunk, self._run(sums, rows, chunk, *scored, 0))
        return scored

    def visit_chunk(self, sums: DualSums, rows: Rows, chunk: Chunk, prepared: Scored | None = None) -> None:
        if prepared is None:
            if sums.totals is not None:
                begin(rows, chunk, self.risk, self.bias, self.learning, sums.totals)
            keys = np.empty(chunk.n_rows)
            require_finite(chunk, self._run(sums, rows, chunk, keys, self._scratch(), self.ascent.visits))
            if sums.cache is not None:
                self.offer(sums.cache, rows, chunk, keys)
            return
        self._run(sums, rows, chunk, prepared.keys, prepared.scratch._replace(scored=True), self.ascent.visits)

    def divided(self) -> tuple[RowsDualPass, RowsDualPass] | None:
        if self.first or self.streams is None:
            return None
        return replace(self, caches={}, ascent=replace(self.ascent, start=None)), replace(self, known=True)

    def score(self, rows: Rows, chunk: Chunk) -> tuple[Rows, Chunk]:
        size, kept, rows = len(self.order), np.empty(chunk.n_rows, np.bool_), {**rows, "z": np.empty(chunk.n_rows)}
        sums = DualSums(np.empty(0), np.empty((2, self.grids.folds, 0)), np.empty((2, 4)))  # the client has them
        for start in range(0, chunk.n_rows, size):
            stop = min(start + size, chunk.n_rows)
            found = self.prepare(sums, {name: array[start:stop] for name, array in rows.items()}, chunk.rows(start, stop))
            kept[start:stop] = found.scratch.shares[: stop - start] != np.inf
        codes, slots = rows["codes"], self._slots()
        predicted, last = codes[:, slots.predicted], codes[:, slots.last] if slots.last >= 0 else self.risk.loss.encode(0.0)
        kept |= (predicted != last) | (codes[:, slots.ascent] != predicted)
        return {"z": rows["z"]}, with_entries_of(kept, chunk)

    def conclude(self, sums: DualSums, rows: Rows, chunk: Chunk, prepared: Scored) -> None:  # type: ignore[override]
        """The cut of the ascent, and rows for the cache."""
        dual.add_changes(
            self.risk.loss, _records(rows, chunk), rows["codes"], self.bias, self._slots(), self.grids, self._added(sums)
        )
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, prepared.keys)

    def _scratch(self) -> records.Scratch:
        return records.Scratch(np.empty(len(self.order)), np.empty(len(self.order), np.int64))

    def _run(self, sums: DualSums, rows: Rows, chunk: Chunk, keys: np.ndarray, scratch: records.Scratch, steps: int) -> int:
        """Run the kernel, which fills `keys` (n); returns a row whose score is not finite, or −1."""
        now, loss, size = self.ascent, self.risk.loss, len(self.order)
        fetched = np.arange(size) if self.fetched is None else self.fetched
        return dual.ascend(
            loss,
            _records(rows, chunk),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys, self.known),
            records.Start(now.w, now.kappa, loss.parts(now.mixture), self.C, self.bias, self.l1, now.stretch),
            self._slots(),
            self.grids,
            records.Visits(self.order, self.places, steps, fetched, self.near or size),
            self._added(sums),
            scratch,
        )

    def _slots(self) -> records.Slots:
        return records.Slots(self.ascent.cut, self.ascent.dual, self.last)

    @staticmethod
    def _added(sums: DualSums) -> records.DualSums:
        assert sums.w is not None
        return records.DualSums(sums.w, sums.cuts, sums.b)

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        taken, codes, numbers = _records(rows, chunk), rows["codes"], chunk.numbers
        if self.sample is not None:
            sample_free(keys, self.risk.loss.free_below, numbers, self.sample)
        if self.streams is not None:  # rows at a bound may be here without their entries (`score`)
            keys[keys >= self.risk.loss.free_below] = np.inf

        def offered(first: int, *buffers) -> tuple[int, int]:
            return dual.offer(self.risk.loss, first, taken, keys, codes, self.ascent.dual, self.bias, numbers, *buffers)

        cache.fill(offered, chunk.n_rows)

    def merge(self, total: DualSums, part: DualSums) -> DualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        if total.w is not None:
            assert part.w is not None
            vectors.add(total.w, part.w)
            total.w -= self.ascent.running  # now w′ and the steps of all lanes
        total.b += part.b
        if total.totals is not None:
            assert part.totals is not None
            total.totals.merge(part.totals)
        return total


def _records(rows: Rows, chunk: Chunk) -> records.Rows:
    return records.Rows(chunk.indptr, chunk.indices, chunk.data, chunk.y, rows.get("u"))


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    loss: Loss
    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            dual.merge_shares(self.loss, rows["codes"], merge.into, merge.gone, merge.share)
