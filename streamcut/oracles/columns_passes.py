"""The passes of K columns (streamcut.compiled.columns) as functions of a block of rows and its row state.

Row state: `z`, `z_b` (K,) at the last scored point and the best one, `codes` (2, K) of the shares, `t` the row's class or
`target` its number, `u` its weight (only when not all 1), `fold` (only where there are folds).

The random order in which dual ascent visits rows: groups that fit a cache level, and batches of groups.

All rows of a batch come in one random order: neighbours that always come together slow down convergence
(solvers/columns.md). For the same reason a lane of several batches is read from several positions at once,
different in each pass, where memory allows: batches combine a piece from each position.

A batch is larger than a cache level. So the rows of its random order come in runs: as many as a group has are fetched in memory
order, and then take their steps in any order.

Where passes are accelerated, a row cache too small for all free rows takes a random sample of them (`sample_free`). Plain ascent
keeps those nearest to their kink: the others will soon reach a bound and leave. Accelerated ascent converges to a mean of its
steps, so sweeps should move that mean as steps over all rows would, and a random sample is unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import columns as kernels
from streamcut.compiled import problems, vectors
from streamcut.compiled.problems import ActiveColumns, Added, Order, PairState, Room
from streamcut.compiled.records import Rows as Csr
from streamcut.compiled.splitmix import draw_below
from streamcut.execution.feed import ROW_BYTES, Streams
from streamcut.execution.passes import Blocks, Lanes, Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.io.dataset import entry_bytes
from streamcut.io.manifest import Manifest, Statistics
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import ColumnsRisk
from streamcut.oracles.columns_cache import ColumnsCache, Sweeps
from streamcut.oracles.row_passes import Equal, First, RowPass, Sides, Totals, begin, require_finite, targets


def kinds_of(columns: ActiveColumns) -> list[tuple[float, int]]:
    """(class, left-out fold) of every column, 0 and −1 where there are none: they define its rows and targets."""
    nothing = np.zeros(len(columns.cost))
    classes = nothing if columns.positive is None else columns.positive
    folds = nothing - 1 if columns.left_out is None else columns.left_out
    return list(zip(classes.tolist(), folds.astype(int).tolist(), strict=True))


def constants(loss: Loss, columns: int) -> np.ndarray:
    """An array for the b of `columns` problems and the sums that bound its rounding: compiled.columns.add_constant."""
    return np.zeros((3 if loss.sized() else 1, columns))


@dataclass(slots=True)
class ColumnSums:
    """`w` (D, A) the running weights, summed over lanes; the changes of U (D, A) and b; the rise of the dual (A); in the
    first pass the totals, and Σ u of every fold (folds,). `solved` are the w (D,) that solve for cached rows, by column;
    `sides`, the Sides requested from the pass, for each kind of column."""

    w: np.ndarray | None
    U: np.ndarray
    b: np.ndarray
    gain: np.ndarray
    totals: Totals | None = None
    by_fold: np.ndarray | None = None
    solved: dict[int, np.ndarray] = field(default_factory=dict)
    sides: dict[tuple[float, int], Sides] = field(default_factory=dict)
    cache: ColumnsCache | None = None
    at: int = 0  # the next row of the lane


def _merge(total: ColumnSums, part: ColumnSums) -> ColumnSums:
    if total.w is not None and part.w is not None:
        vectors.add(total.w.reshape(-1), part.w.reshape(-1))
    vectors.add(total.U.reshape(-1), part.U.reshape(-1))
    total.b += part.b
    total.gain += part.gain
    if total.totals is not None:
        assert part.totals is not None
        total.totals.merge(part.totals)
    if total.by_fold is not None:
        total.by_fold += part.by_fold
    for kind, sides in part.sides.items():
        total.sides[kind].merged(sides)
    return total


@dataclass(frozen=True, slots=True)
class ColumnScores:
    """z of all rows at `W` (D, A), the part of an AscentPass that can be done ahead of its steps."""

    risk: ColumnsRisk
    grids: Grids
    columns: ActiveColumns
    W: np.ndarray
    versions: tuple[int, int]
    order: Order
    reads: ClassVar[tuple[str, ...]] = ("z", "codes", "t", "target", "u", "fold")
    fills: ClassVar[tuple[str, ...]] = ("z",)

    def score(self, rows: Rows, chunk: Chunk) -> np.ndarray:
        pairs = PairState(rows["codes"], rows["z"], np.empty(chunk.n_rows), rows.get("fold"))
        kept, room = np.empty(chunk.n_rows, np.bool_), Room.of(self.order.near, self.W.shape[1])
        W = self.columns.group.vectors(self.W)
        problem = self.risk.loss, _csr(self.risk, rows, chunk), self.columns, pairs, self.versions, W, self.grids, self.order
        require_finite(chunk, kernels.score(*problem, room, kept))
        return kept


def _csr(risk: ColumnsRisk, rows: Rows, chunk: Chunk) -> Csr:
    y = rows["target"] if risk.labels is None else rows["t"]
    return Csr(chunk.indptr, chunk.indices, chunk.data, y, rows.get("u"))


@dataclass(frozen=True, slots=True)
class AscentPass(Pass):
    """z of all rows at `W` (D, A), and steps of dual ascent at running weights, which start from `start` (D, A) in each lane.

    versions  of the codes: the one that holds the shares of U, and the one that receives the new shares
    first   the first pass also fills the row state and sums the totals
    equal   requests Sides of every kind of column
    sample  random seed for the choice of cached rows
    scored  `z` has the scores, and rows at rest may lack their entries
    """

    risk: ColumnsRisk
    grids: Grids
    columns: ActiveColumns
    W: np.ndarray
    start: np.ndarray
    versions: tuple[int, int]
    order: Order
    caches: Mapping[int, ColumnsCache]
    sample: tuple[int, int]
    _: KW_ONLY
    first: First | None = None
    equal: Equal | None = None
    streams: Streams | None = None
    scored: bool = False
    interruptible: ClassVar[bool] = True

    @property
    def pure(self) -> bool:
        return not self.caches

    @property
    def blocks(self) -> Blocks:
        """Blocks hold whole batches."""
        return Blocks(together=len(self.order.rows), streams=self.streams)

    def begin(self, first_row: int) -> ColumnSums:
        (D, A), problems = self.W.shape, len(self.columns.cost)
        folds = None if self.risk.folds is None or self.first is None else np.zeros(self.risk.folds.count)
        totals = None if self.first is None else Totals.nothing(D)
        loss = self.risk.loss
        sums = ColumnSums(self.start.copy(), np.zeros((D, A)), constants(loss, problems), np.zeros(problems), totals, folds)
        if (cache := self.caches.get(first_row)) is not None:
            cache.serve(self.columns)
            sums.cache = cache
        if self.equal is not None:
            sums.sides = {kind: Sides.nothing(self.equal.grids, D) for kind in kinds_of(self.columns)}
        return sums

    def visit_chunk(self, sums: ColumnSums, rows: Rows, chunk: Chunk) -> None:
        if sums.totals is not None:
            self._learn(sums, rows, chunk)
        if self.equal is not None:
            self._halve(sums, rows, chunk, self.equal)
        assert sums.w is not None
        pairs = PairState(rows["codes"], rows["z"], np.empty(chunk.n_rows), rows.get("fold"), self.scored)
        vectors_of, room = self.columns.group.vectors, Room.of(self.order.near, self.W.shape[1])
        added = Added(vectors_of(sums.w), vectors_of(sums.U), sums.b, sums.gain)
        problem = (
            self.risk.loss,
            _csr(self.risk, rows, chunk),
            self.columns,
            pairs,
            self.versions,
            vectors_of(self.W),
            self.grids,
            self.order,
        )
        require_finite(chunk, kernels.ascend(*problem, added, room))
        if sums.cache is not None:
            sample_free(pairs.keys, self.risk.loss.free_below, chunk.numbers, self.sample)
            if self.streams is not None:  # rows at a bound may be here without their entries (ColumnScores)
                pairs.keys[pairs.keys >= self.risk.loss.free_below] = np.inf
            sums.cache.collect(_csr(self.risk, rows, chunk), pairs, self.versions[1], chunk.numbers)

    def divided(self) -> tuple[ColumnScores, AscentPass] | None:
        more = self.first is not None or self.equal is not None
        if self.scored or more or self.streams is None or self.order.visits == 0:
            return None
        scores = ColumnScores(self.risk, self.grids, self.columns, self.W, self.versions, self.order)
        return scores, replace(self, scored=True)

    def _learn(self, sums: ColumnSums, rows: Rows, chunk: Chunk) -> None:
        assert self.first is not None
        assert sums.totals is not None
        apart = {name: array for name, array in rows.items() if name != "z_b"}
        begin(apart, chunk, self.risk.pointwise, self.columns.bias, self.first, sums.totals)
        if self.risk.labels is not None:
            rows["t"][:] = targets(self.risk, chunk, chunk.numbers)
        problems.at_zero(self.risk.loss, rows["target" if self.risk.labels is None else "t"], self.columns, rows["z_b"])
        if sums.by_fold is not None:
            fold = rows["fold"][:] = self.risk.folds.of_chunk(chunk)
            u, rounder = rows.get("u", np.ones(chunk.n_rows)), self.first.grids.weight
            for number in range(len(sums.by_fold)):
                sums.by_fold[number] += ((u[fold == number] + rounder) - rounder).sum()

    def _halve(self, sums: ColumnSums, rows: Rows, chunk: Chunk, equal: Equal) -> None:
        u, fold = rows.get("u"), rows.get("fold")
        for (positive, left_out), sides in sums.sides.items():
            y = rows["target"] if self.risk.labels is None else np.where(rows["t"] == positive, 1.0, -1.0)
            weight = u
            if left_out >= 0:
                weight = np.where(fold == left_out, 0.0, 1.0 if u is None else u)
            sides.add(chunk, self.risk.loss, equal.score, weight, self.columns.bias, equal.grids, y)

    merge = staticmethod(_merge)


@dataclass(frozen=True, slots=True)
class SweepsPass(Pass):
    """Sweeps over cached rows, lanes separately, until they no longer pay; then their shares are written to half `half` of
    the codes, and U is updated. The data is not read.

    start      (D, A) running weights
    b      an array like that of the changes of b
    """

    caches: Mapping[int, ColumnsCache]
    sweeps: Sweeps
    start: np.ndarray
    half: int
    b: np.ndarray
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def begin(self, first_row: int) -> ColumnSums:
        sums = ColumnSums(self.start.copy(), np.zeros_like(self.start), np.zeros_like(self.b), np.zeros(self.b.shape[1]))
        assert sums.w is not None
        sums.cache, sums.at = self.caches[first_row], first_row
        sums.gain += sums.cache.sweep_columns(self.sweeps, sums.w, first_row)
        return sums

    def visit_rows(self, sums: ColumnSums, rows: Rows) -> None:
        assert sums.cache is not None
        sums.cache.write_codes(self.sweeps, self.half, rows["codes"], sums.at, sums.U, sums.b)
        sums.at += len(rows["codes"])

    merge = staticmethod(_merge)


@dataclass(frozen=True, slots=True)
class _LinePass(RowPass):
    """Base of passes over the row state of columns."""

    loss: Loss
    columns: ActiveColumns
    row_arrays: ClassVar[tuple[str, ...]] = ("z", "z_b", "t", "target", "u", "fold")

    def _of(self, rows: Rows) -> tuple[Any, ...]:
        y = rows["target"] if self.columns.positive is None else rows["t"]
        return self.loss, y, rows.get("u"), rows.get("fold"), self.columns, rows["z_b"], rows["z"]


@dataclass(frozen=True, slots=True)
class EnterPass(_LinePass):
    """Columns start at w = 0, with no shares."""

    row_arrays: ClassVar[tuple[str, ...]] = ("z_b", "t", "target", "codes")

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        y = rows["target"] if self.columns.positive is None else rows["t"]
        problems.at_zero(self.loss, y, self.columns, rows["z_b"])
        problems.forget(self.columns, rows["codes"])


def _merge_pairs(total: np.ndarray, part: np.ndarray) -> np.ndarray:
    for ours, theirs in zip(total, part, strict=True):
        vectors.accumulate(theirs, ours)
    return total


@dataclass(frozen=True, slots=True)
class ColumnSlopesPass(_LinePass):
    """Slopes of Σ u ℓ at z_b + k_a (z − z_b), (A, 2) as (total, rounding lost)."""

    k: np.ndarray

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros((len(self.k), 2))

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        problems.slopes(*self._of(rows), self.k, sums)

    merge = staticmethod(_merge_pairs)


@dataclass(frozen=True, slots=True)
class ColumnStepPass(_LinePass):
    """z_b += k_a (z − z_b) in the row state; Σ u ℓ there, (A, 2), and the largest shares (A,) of losses with unbounded ones."""

    k: np.ndarray

    def begin(self, first_row: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(self.k), 2)), np.zeros(len(self.k))

    def visit_rows(self, sums: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        problems.step(*self._of(rows), self.k, *sums)

    def merge(self, total, part):
        _merge_pairs(total[0], part[0])
        np.maximum(total[1], part[1], out=total[1])
        return total


STREAMS = (4, 2)  # positions in a lane from which rows come at once: batches shrink before their number does
_MOST_ROWS = 8192
_RUN = 16  # rows fetched in one run: fetched alone, each would cost a full latency
_FULL = 1.5  # times the mean entries of a batch: the most that are put together


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Groups of about `nnz` entries, and `batch`, the number of groups in memory at once."""

    nnz: int
    batch: int

    def group_rows(self, statistics: Statistics) -> int:
        """Rows of a group, visited in random order; depends on the whole data."""
        return min(max(1, self.nnz * statistics.n_rows // max(statistics.nnz, 1)), _MOST_ROWS)

    def batch_rows(self, statistics: Statistics) -> int:
        """Rows of a batch, which blocks of rows never split."""
        return self.batch * self.group_rows(statistics)

    def drawn(self, statistics: Statistics, passes: int, seed: int) -> np.ndarray:
        """The order of the rows of a batch in the pass after `passes`. Rows of a group are fetched together."""
        random, rows = np.random.default_rng((passes, seed)), min(self.batch_rows(statistics), statistics.n_rows)
        if statistics.n_rows <= self.batch_rows(statistics):  # a single batch
            return random.permutation(rows)
        runs = (_RUN * random.permutation(-(-rows // _RUN))[:, None] + np.arange(_RUN)).reshape(-1)
        return runs[runs < rows]

    def streams(self, statistics: Statistics, count: int, passes: int, seed: int) -> Streams:
        """The positions from which the rows of batches are read in the pass after `passes`."""
        rows = self.batch_rows(statistics) // count
        return Streams(count, rows, self._entries_together(), (passes, seed))

    def has_streams(self, statistics: Statistics, lanes: Lanes) -> bool:
        """Whether a lane has more rows than a batch."""
        return max(stop - start for start, stop in pairwise(lanes.bounds)) > self.batch_rows(statistics)

    def stream_bytes(self, manifest: Manifest, count: int, row_bytes: int) -> int:
        """Memory that a worker needs for `count` streams besides their read buffers; each row has `row_bytes` of row state.

        There are three batches: one takes steps, one is being scored, and one being read or written back.
        """
        rows = self.batch_rows(manifest.statistics)
        together = ROW_BYTES * rows + entry_bytes(manifest) * self._entries_together() + row_bytes * rows
        return 3 * together

    def _entries_together(self) -> int:
        return int(_FULL * self.nnz * self.batch)

    def mixing_bytes(self, statistics: Statistics) -> int:
        """Memory that a worker needs to visit all rows of a batch in random order: both orders, four numbers per row."""
        return 48 * min(self.batch_rows(statistics), statistics.n_rows)


def sample_free(keys: np.ndarray, free_below: float, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """Replace the keys (n) below `free_below`, those of free rows, in place by random numbers in [0, 1) that depend on `seed`
    and the rows' `numbers` (n) alone."""
    draw_below(free_below, numbers, np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64), keys)
