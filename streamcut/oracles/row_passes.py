"""The passes of a linear solver with a decomposable risk, as pure functions of a block of rows and its row state.

Row state: `z` margins at the last scored w, `z_b` margins at the best point w_b, `u` row weights (only when not all 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled import hinge, linear, vectors
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.losses.hinge import Hinge
from streamcut.rounding import Grids

_pair = partial(np.zeros, 2)


def weight_sum(u: np.ndarray, grids: Grids) -> np.ndarray:
    """Σ u on the grids of weights: [coarse, what that leaves]."""
    kept = (u + grids.weight) - grids.weight
    fine = grids.fine_weight
    return np.array([kept.sum(), (((u - kept) + fine) - fine).sum() if fine else 0.0])


@dataclass(slots=True)
class Totals:
    """What the first pass learns of all rows: Σ u, and of every feature Σ u |x| (features), both on coarse grids."""

    weight: float
    magnitudes: np.ndarray

    @classmethod
    def nothing(cls, features: int) -> Totals:
        return cls(0.0, np.zeros(features))

    def add(self, chunk: Chunk, u: np.ndarray | None, weight: float, bias: float, grids: Grids) -> None:
        """Take the rows of a chunk, which weigh `u` (None: 1 each), together `weight`."""
        self.weight += weight
        linear.add_magnitudes(chunk.indptr, chunk.indices, chunk.data, u, bias, grids.vector, self.magnitudes)

    def merge(self, part: Totals) -> None:
        self.weight += part.weight
        vectors.add(self.magnitudes, part.magnitudes)


@dataclass(slots=True)
class CutSums:
    """Sums over rows, none divided by M: `a` (folds, D) and `b` [coarse, rest] of the cut.

    loss    at w, as (total, rounding lost)
    totals  of the first pass
    """

    a: np.ndarray | None
    b: np.ndarray = field(default_factory=_pair)
    loss: np.ndarray = field(default_factory=_pair)
    totals: Totals | None = None


def merge(total: CutSums, part: CutSums) -> CutSums:
    if total.a is not None:
        assert part.a is not None
        vectors.add(total.a.reshape(-1), part.a.reshape(-1))
    total.b += part.b
    hinge.accumulate(part.loss, total.loss)
    if total.totals is not None:
        assert part.totals is not None
        total.totals.merge(part.totals)
    return total


@dataclass(frozen=True, slots=True)
class ScorePass(Pass):
    """Scores at `w`, the loss there and, unless `kappa` is None, the cut at z_b + κ(z − z_b).

    `at_w` takes the cut at w itself and neither reads nor keeps margins of a best point. `first` also fills `u` and sums it.
    """

    risk: Hinge
    grids: Grids
    w: np.ndarray
    bias: float
    kappa: float | None = None
    at_w: bool = False
    first: bool = False
    interruptible: ClassVar[bool] = True

    def begin(self) -> CutSums:
        D = len(self.w)
        a = np.zeros((self.grids.folds, D)) if self.at_w or self.kappa is not None else None
        return CutSums(a, totals=Totals.nothing(D) if self.first else None)

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        z = rows.get("z")
        if z is None:
            z = np.empty(chunk.n_rows)
        u = rows.get("u")
        if sums.totals is not None:
            weights = np.empty(chunk.n_rows) if u is None else u
            weight = self.risk.weights(chunk.y, chunk.weight, self.grids.weight, weights)
            sums.totals.add(chunk, u, weight, self.bias, self.grids)
        linear.scores(chunk.indptr, chunk.indices, chunk.data, self.w, self.bias, z)
        if (bad := self.risk.margins(chunk.y, u, z, sums.loss)) >= 0:
            raise CorruptError(f"row {chunk.first_row + bad + 1}: its score is not finite; run `streamcut check --read-data`")
        if sums.a is not None:
            coefficients = np.empty(chunk.n_rows)
            z_b = z if self.at_w else rows["z_b"]
            kappa = 1.0 if self.kappa is None else self.kappa
            self.risk.cut(chunk.y, z_b, z, kappa, u, self.grids, coefficients, sums.b)
            linear.scatter(chunk.indptr, chunk.indices, chunk.data, coefficients, self.bias, self.grids, sums.a)

    merge = staticmethod(merge)


@dataclass(frozen=True, slots=True)
class CutPass(Pass):
    """The cut at z_b + κ(z − z_b) from margins that are known already: OCAS's second pass."""

    risk: Hinge
    grids: Grids
    dimension: int
    bias: float
    kappa: float
    interruptible: ClassVar[bool] = True

    def begin(self) -> CutSums:
        return CutSums(np.zeros((self.grids.folds, self.dimension)))

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        coefficients = np.empty(chunk.n_rows)
        u = rows.get("u")
        self.risk.cut(chunk.y, rows["z_b"], rows["z"], self.kappa, u, self.grids, coefficients, sums.b)
        linear.scatter(chunk.indptr, chunk.indices, chunk.data, coefficients, self.bias, self.grids, sums.a)

    merge = staticmethod(merge)


@dataclass(frozen=True, slots=True)
class RowPass(Pass):
    """Base of passes over scores that are known, whose partial is one or more arrays that add up."""

    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("z", "z_b", "t", "u")  # whichever there are

    def merge(self, total, part):
        hinge.accumulate(part, total)
        return total


@dataclass(frozen=True, slots=True)
class SlopePass(RowPass):
    """Slope at k = 0 of the loss along z_b + k(z − z_b)."""

    def begin(self) -> np.ndarray:
        return _pair()

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        hinge.slope_at_zero(rows["z_b"], rows["z"], rows.get("u"), sums)


@dataclass(frozen=True, slots=True)
class StepPass(RowPass):
    """z_b += k (z − z_b) in the row state, and the loss there."""

    k: float

    def begin(self) -> np.ndarray:
        return _pair()

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        hinge.step(rows["z_b"], rows["z"], self.k, rows.get("u"), sums)


@dataclass(frozen=True, slots=True)
class HistogramPass(RowPass):
    """Jumps and numbers of the breakpoints between `edges`."""

    edges: np.ndarray

    def begin(self) -> tuple[np.ndarray, np.ndarray]:
        bins = len(self.edges) - 1
        return np.zeros(bins), np.zeros(bins, dtype=np.int64)

    def visit_rows(self, bins: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        hinge.breakpoint_histogram(rows["z_b"], rows["z"], rows.get("u"), self.edges, *bins)

    def merge(self, total, part):
        for ours, theirs in zip(total, part, strict=True):
            ours += theirs
        return total


@dataclass(frozen=True, slots=True)
class BreakpointsPass(RowPass):
    """The breakpoints with low ≤ k < high, of which there are `count`."""

    low: float
    high: float
    count: int

    def begin(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return []

    def visit_rows(self, found: list, rows: Rows) -> None:
        k, jump = np.empty(self.count), np.empty(self.count)
        n = hinge.breakpoints_between(rows["z_b"], rows["z"], rows.get("u"), self.low, self.high, k, jump)
        found.append((k[:n].copy(), jump[:n].copy()))

    def merge(self, total, part):
        return total + part
