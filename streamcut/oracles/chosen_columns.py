"""The oracle of λ‖w‖₁ for many features: a pass at any w, and the columns of some features loaded into memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.bundle.l1_only import L1OfMany
from streamcut.compiled import chosen_columns as kernels
from streamcut.compiled.chosen_columns import Columns, RowsInMemory
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.chunk import Chunk
from streamcut.io.manifest import Manifest
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Cut
from streamcut.oracles import row_passes
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import CutSums, ScorePass, SlopesPass

OF_ROWS = 8 * 8  # bytes of a row in addition to its entries: z, target, weight, slope, curvature, a step, and temporaries
_FLAT, _STEPS = 1e-12, 4  # a search for the best intercept alone: its penalty, and the Newton steps after it


class Piece(NamedTuple):
    """Entries of rows, as returned by kernels.take."""

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@dataclass(slots=True)
class CountedSums(CutSums):
    """CutSums with the number of entries of each feature."""

    counts: np.ndarray = field(default_factory=partial(np.zeros, 0))


@dataclass(frozen=True, slots=True)
class CountingPass(ScorePass):
    """A ScorePass that counts the entries of each feature."""

    def begin(self, first_row: int) -> CountedSums:
        plain = ScorePass.begin(self, first_row)
        return CountedSums(plain.a, plain.b, plain.loss, plain.totals, np.zeros(len(self.w)))

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        assert isinstance(sums, CountedSums)
        ScorePass.visit_chunk(self, sums, rows, chunk)
        kernels.count(chunk.indices[chunk.indptr[0] : chunk.indptr[-1]], self.bias, chunk.n_rows, sums.counts)

    @staticmethod
    def merge(total: CutSums, part: CutSums) -> CutSums:  # type: ignore[override]
        assert isinstance(total, CountedSums)
        assert isinstance(part, CountedSums)
        total.counts += part.counts
        return row_passes.merge(total, part)


@dataclass(frozen=True, slots=True)
class TakePass(Pass):
    """The entries of features with a place in `positions` (D,), which is −1 for all others, and the number of their rows."""

    positions: np.ndarray
    bias: float
    loss: Loss
    interruptible = True
    row_arrays = ()

    def begin(self, first_row: int) -> list[Piece]:
        return []

    def visit_chunk(self, pieces: list[Piece], rows: Rows, chunk: Chunk) -> None:
        ends = np.empty(chunk.n_rows + 1, np.int64)
        kernels.kept(chunk.indptr, chunk.indices, self.positions, self.bias, ends)
        columns = np.empty(ends[-1], np.int32)
        values = np.empty(ends[-1], _exact(np.float32 if chunk.data is None else chunk.data.dtype))
        kernels.take(self.loss, chunk.indptr, chunk.indices, chunk.data, chunk.y, self.positions, self.bias, columns, values)
        pieces.append(Piece(ends, columns, values))

    def merge(self, total: list[Piece], part: list[Piece]) -> list[Piece]:
        return total + part


def _exact(dtype: Any) -> np.dtype:
    """The float type that holds values of `dtype` exactly."""
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def entry_bytes(manifest: Manifest) -> int:
    """Bytes of a column entry while columns are built from rows."""
    types = [np.float32 if shard.ones else shard.arrays["data"].dtype for shard in manifest.shards]
    return 2 * (4 + max(_exact(dtype).itemsize for dtype in types))


class FeaturesOracle(LinearOracle):
    """A linear oracle that also keeps the columns of the `chosen` features in memory, up to `room` bytes.

    steep   (D,) the slope of the mean loss at the w of the last pass
    counts  (D,) the entries of each feature, known after the first pass
    """

    kept: tuple[str, ...] = (*LinearOracle.kept, "steep", "counts", "chosen")

    def __init__(
        self, runner: Runner, risk: PointwiseRisk, *, C: float, bias: float, free: bool = False, room: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, free=free)
        self.free = free
        self.penalty = L1OfMany(0.0, free=free)
        D = self.dimension
        self.steep, self.counts, self.chosen = np.zeros(D), np.zeros(D), np.zeros(D)
        self.columns: Columns | None = None
        self._most = room // entry_bytes(runner.feed.data.manifest)

    def _first_pass(self, w: np.ndarray) -> Pass:
        return CountingPass(self._risk, self._grids, w, self._bias, at_w=True, first=self._first)

    def _read(self, work: Pass) -> Any:
        sums = super()._read(work)
        if isinstance(work, CountingPass):
            self.counts = sums.counts
        return sums

    def _cut(self, sums: CutSums) -> Cut:
        cut = super()._cut(sums)
        self.steep = cut.a.copy()
        return cut

    def expand(self, w: np.ndarray) -> Cut:
        """One pass: the margins of w, and the cut there."""
        self._scored(w)
        return self._cut(self._read(self._scores(w, kappa=1.0, at_w=True)))

    def steepest_at_zero(self) -> float:
        """As in LinearOracle; with a free intercept, at the best one, with two more passes."""
        cut, _ = self.start()
        if self.free:
            w = np.zeros(self.dimension)
            w[-1] = -1.0 if cut.a[-1] > 0.0 else 1.0
            self.score(w)
            k = float(two_cuts.minimise(lambda k: _FLAT * k + self.slopes(k), 1)[0])
            for _ in range(_STEPS):
                slopes, (curvature,) = self._look(SlopesPass(np.array([k]), self._loss))
                k -= slopes.sum() / curvature if curvature > 0.0 else 0.0
            cut = self.cut_between(k)
        return float(np.abs(cut.a[: self.dimension - self.free]).max(initial=0.0))

    # -- which columns ----------------------------------------------------------------------------------------------------

    def wanting(self, w: np.ndarray) -> float:
        """The largest violation of a weight whose feature has no column, at the w of the last pass; ≤ 0: none is violated."""
        slope = self.c_bar * self.steep
        price = np.full(self.dimension, self.penalty.l1)
        price[self.dimension - self.free :] = 0.0
        off = np.where(w == 0.0, np.abs(slope) - price, np.abs(slope + price * np.sign(w)))
        return float(off[(self.chosen == 0.0) & (self.counts > 0.0)].max(initial=0.0))

    def choose(self, w: np.ndarray) -> None:
        """Choose the features that can matter: those with a weight, then the steepest, as many as fit.

        If features with a weight leave no room for all that are steeper than λ, the steepest get half of it, and those
        with a weight take turns.
        """
        size, weights = self.c_bar * np.abs(self.steep), w != 0.0
        wanted = (size > self.penalty.l1) & (self.chosen == 0.0) & ~weights
        order = np.lexsort((-size, ~weights))
        if self.counts[weights | wanted].sum() > self._most:
            first = np.flatnonzero(wanted)[np.argsort(-size[wanted], kind="stable")]
            first = first[np.cumsum(self.counts[first]) <= 0.5 * self._most]
            turns = np.lexsort((-size, self.chosen, ~weights))
            order = np.concatenate([first, turns[~np.isin(turns, first)]])
        if self.free:
            order = np.concatenate([[self.dimension - 1], order[order != self.dimension - 1]])
        order = order[self.counts[order] > 0.0]
        fits = np.cumsum(self.counts[order]) <= self._most
        fits[:1] = True
        self.chosen[:] = 0.0
        self.chosen[order[fits]] = 1.0
        self.columns = None

    def take(self) -> None:
        """One pass: the columns of all chosen features."""
        features, positions = np.flatnonzero(self.chosen), np.full(self.dimension, -1, np.int32)
        positions[features] = np.arange(len(features))
        pieces = self._read(TakePass(positions, self._bias, self._loss))[::-1]
        indptr = np.zeros(len(features) + 1, np.int64)
        np.cumsum(self.counts[features], out=indptr[1:])
        values = np.result_type(*{piece.values.dtype for piece in pieces})
        rows, data, ends, row = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], values), indptr[:-1].copy(), 0
        while pieces:
            piece = pieces.pop()
            kernels.turn(*piece, row, ends, rows, data)
            row += len(piece.indptr) - 1
        self.columns = Columns(indptr, rows, data)

    def in_memory(self) -> tuple[Columns, np.ndarray, RowsInMemory]:
        """(the columns, their features ascending, the rows at the best point); after a checkpoint a pass reloads them."""
        if self.columns is None:
            before = self.passes
            self.take()
            self.passes = before
        assert self.columns is not None
        rows = self._runner.rows
        return self.columns, np.flatnonzero(self.chosen), RowsInMemory(rows["z_b"].copy(), rows.get("target"), rows.get("u"))

    @property
    def loss(self) -> Loss:
        """The loss of a row."""
        return self._loss

    def going(self) -> None:
        """Raise Interrupted when training is to stop."""
        if self._runner.stop():
            raise Interrupted
