"""The passes of a linear solver with a loss of single rows, as pure functions of a block of rows and its row state.

Row state: `z` (margins or residuals) at the last scored w, `z_b` at the best point w_b, `u` row weights (only when not all 1),
`target` y_i where the loss needs it in addition to z.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from streamcut.compiled import linear, row_losses, vectors
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids, exact_rounder
from streamcut.losses.loss import Loss, TargetScale
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.smoothed import Smoothed, Widened

_pair = partial(np.zeros, 2)


def require_finite(chunk: Chunk, bad: int) -> None:
    """Raise CorruptError for the row `bad` of a block, if it is not −1."""
    if bad >= 0:
        raise CorruptError(f"row {chunk.numbers[bad] + 1}: its score is not finite; run `streamcut info --check --read-data`")


@dataclass(slots=True)
class Sides:
    """The cut of rows that pull scores up, and the cut of rows that pull them down: `a` (2, folds, D), `b` (2, 4)."""

    a: np.ndarray
    b: np.ndarray

    @classmethod
    def nothing(cls, grids: Grids, features: int) -> Sides:
        return cls(np.zeros((2, grids.folds, features)), np.zeros((2, 4)))

    def add(
        self, chunk: Chunk, loss: Loss, score: float, u: np.ndarray | None, bias: float, grids: Grids,
        y: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Add the rows of a chunk, all with this score; `y` replaces the chunk's targets."""
        coefficients = np.empty((2, chunk.n_rows))
        row_losses.cuts_of_sides(loss, chunk.y if y is None else y, score, u, grids, coefficients, self.b)
        for side in range(2):
            linear.scatter(chunk.indptr, chunk.indices, chunk.data, coefficients[side], bias, grids, self.a[side])

    def merged(self, part: Sides) -> Sides:
        vectors.add(self.a.reshape(-1), part.a.reshape(-1))
        self.b += part.b
        return self


class Equal(NamedTuple):
    """The point of the Sides requested by First: the same score for all rows; sums are on `grids`."""

    score: float
    grids: Grids


@dataclass(slots=True)
class Totals:
    """Sums of the first pass over all rows: Σ u, and Σ u |x| (features), both on coarse grids.

    numbers  for numeric targets: row_losses.target_sums
    sides    of the cut where all rows have the same score, if First requests them
    """

    weight: float
    magnitudes: np.ndarray
    numbers: np.ndarray = field(default_factory=partial(np.zeros, 0))
    sides: Sides | None = None

    @classmethod
    def nothing(cls, features: int) -> Totals:
        return cls(0.0, np.zeros(features))

    def add(self, chunk: Chunk, u: np.ndarray | None, weight: float, bias: float, grids: Grids) -> None:
        """Add the rows of a chunk, with weights `u` (None: all 1) and total `weight`."""
        self.weight += weight
        linear.add_magnitudes(chunk.indptr, chunk.indices, chunk.data, u, bias, grids.vector, self.magnitudes)

    def merge(self, part: Totals) -> None:
        self.weight += part.weight
        vectors.add(self.magnitudes, part.magnitudes)
        self.numbers = part.numbers if len(self.numbers) == 0 else self.numbers + part.numbers
        if part.sides is not None:
            self.sides = part.sides if self.sides is None else self.sides.merged(part.sides)


@dataclass(slots=True)
class CutSums:
    """Sums over rows, none divided by M: `a` (folds, D) and `b` [coarse, rest] of the cut, longer for losses of single rows.

    loss    at w, as (total, rounding lost); also the largest share for losses of single rows
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
    merge_loss(total.loss, part.loss)
    if total.totals is not None:
        assert part.totals is not None
        total.totals.merge(part.totals)
    return total


def merge_loss(total: np.ndarray, part: np.ndarray) -> None:
    """total += part, both (total, rounding lost); a third number, if present, is a maximum."""
    vectors.accumulate(part[:2], total[:2])
    total[2:] = np.maximum(total[2:], part[2:])


@dataclass(frozen=True, slots=True)
class First:
    """Extra work of the first pass: Totals, on their own `grids`, since weights and values are smaller than shares may be.

    For numeric targets also row_losses.target_sums, on the grids of `rounders`: these include the losses of equal
    scores for all rows, the `constants`. `equal` requests Sides.
    """

    grids: Grids
    constants: np.ndarray | None = None
    rounders: tuple[float, float] = (0.0, 0.0)
    equal: Equal | None = None


def begin(rows: Rows, chunk: Chunk, risk: PointwiseRisk, bias: float, first: First, totals: Totals) -> None:
    """Start of the first pass: fill the weights, targets and z at w = 0 of `rows`, where these arrays exist,
    and add to `totals`."""
    u = rows.get("u")
    weights = np.empty(chunk.n_rows) if u is None else u
    if "target" in rows:
        rows["target"][:] = chunk.y
    if "z_b" in rows:
        row_losses.at_zero(risk.loss, chunk.y, rows["z_b"])
    totals.add(chunk, u, risk.weights(chunk.y, chunk.weight, first.grids.weight, weights), bias, first.grids)
    if first.constants is not None:
        if len(totals.numbers) == 0:
            totals.numbers = np.zeros(2 + len(first.constants))
        row_losses.target_sums(risk.loss, chunk.y, u, first.constants, first.rounders, totals.numbers)
    if first.equal is not None:
        if totals.sides is None:
            totals.sides = Sides.nothing(first.equal.grids, len(totals.magnitudes))
        totals.sides.add(chunk, risk.loss, first.equal.score, u, bias, first.equal.grids)


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores at w, the part of a ScorePass with a predicted cut that can be done ahead: the cut needs rows with a share in it."""

    work: ScorePass
    reads: ClassVar[tuple[str, ...]] = ("z", "z_b", "u")
    fills: ClassVar[tuple[str, ...]] = ("z",)

    def score(self, rows: Rows, chunk: Chunk) -> np.ndarray:
        work, share, nothing = self.work, np.empty(chunk.n_rows), np.zeros(4)
        linear.scores(chunk.indptr, chunk.indices, chunk.data, work.w, work.bias, rows["z"])
        z, u, loss = rows["z"].copy(), rows.get("u"), work.risk.loss
        require_finite(chunk, row_losses.margins(loss, chunk.y, u, z, nothing[:3]))
        row_losses.cut_coefficients(loss, chunk.y, rows["z_b"], z, work.kappa, u, work.grids, share, nothing)
        return share != 0.0


@dataclass(frozen=True, slots=True)
class ScorePass(Pass):
    """Scores at `w`, the loss there and, unless `kappa` is None, the cut at z_b + κ(z − z_b).

    `at_w` takes the cut at w itself and neither reads nor keeps z of a best point. `first` also fills `u`, which it sums, and
    `target`. `scored`: `z` has the scores, and rows without a share in the cut may lack their entries. `cut_only`: it
    has the margins, and only the cut is computed (OCAS's second pass).
    """

    risk: PointwiseRisk
    grids: Grids
    w: np.ndarray
    bias: float
    kappa: float | None = None
    at_w: bool = False
    first: First | None = None
    scored: bool = False
    cut_only: bool = False
    interruptible: ClassVar[bool] = True

    def divided(self) -> tuple[RowScores, ScorePass] | None:
        predicted = self.kappa is not None and not (self.at_w or self.cut_only) and self.first is None
        return (RowScores(self), replace(self, scored=True)) if predicted else None

    def begin(self, first_row: int) -> CutSums:
        D = len(self.w)
        a = np.zeros((self.grids.folds, D)) if self.at_w or self.kappa is not None else None
        return CutSums(a, np.zeros(4), np.zeros(3), Totals.nothing(D) if self.first else None)

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        z = rows.get("z")
        if z is None:
            z = np.empty(chunk.n_rows)
        u = rows.get("u")
        if self.first is not None and sums.totals is not None:
            begin(rows, chunk, self.risk, self.bias, self.first, sums.totals)
        entries, loss = (chunk.indptr, chunk.indices, chunk.data), self.risk.loss
        if not self.cut_only:
            if not self.scored:
                linear.scores(*entries, self.w, self.bias, z)
            require_finite(chunk, row_losses.margins(loss, chunk.y, u, z, sums.loss))
        if sums.a is not None:
            z_b, kappa, coefficients = z if self.at_w else rows["z_b"], self.kappa, np.empty(chunk.n_rows)
            kappa = 1.0 if kappa is None else kappa
            row_losses.cut_coefficients(loss, chunk.y, z_b, z, kappa, u, self.grids, coefficients, sums.b)
            linear.scatter(*entries, coefficients, self.bias, self.grids, sums.a)

    merge = staticmethod(merge)


@dataclass(frozen=True, slots=True)
class RowPass(Pass):
    """Base of passes over known scores, whose partial is one or more arrays that add up."""

    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("z", "z_b", "t", "u", "target")  # those that exist

    def merge(self, total, part):
        merge_loss(total, part)
        return total


@dataclass(frozen=True, slots=True)
class SlopesPass(RowPass):
    """Slopes, pairs (total, rounding lost), and curvatures at each k of the loss along z_b + k(z − z_b)."""

    k: np.ndarray
    loss: Loss | Smoothed | Widened

    def begin(self, first_row: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(self.k), 2)), np.zeros(len(self.k))

    def visit_rows(self, sums: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        row_losses.slopes(self.loss, rows["z_b"], rows["z"], self.k, rows.get("target"), rows.get("u"), *sums)

    def merge(self, total, part):
        for pair, other in zip(total[0], part[0], strict=True):
            vectors.accumulate(other, pair)
        vectors.add(total[1], part[1])
        return total


@dataclass(frozen=True, slots=True)
class StepPass(RowPass):
    """z_b += k (z − z_b) in the row state, and the loss there; with k None the loss at z, and z_b stays."""

    k: float | None
    loss: Loss

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros(3)

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        z_b, k = (rows["z"].copy(), 0.0) if self.k is None else (rows["z_b"], self.k)
        row_losses.step(self.loss, z_b, rows["z"], k, rows.get("target"), rows.get("u"), sums)


def first_of(loss: Loss, scale: TargetScale, largest: float) -> First:
    """The sums of the first pass, for rows with values up to `largest` in size."""
    grids = Grids.holding(largest * scale.weight, scale.weight)
    if loss.targets == "labels":
        return First(grids)
    constants = loss.constants(scale)
    scores = min(constants.min(), 0.0), max(constants.max(), 0.0)  # a convex loss is largest at one of the ends
    worst = max(loss.value(score - loss.offset(y), y) for y in (scale.lowest, scale.highest) for score in scores)
    sizes, losses = (exact_rounder(scale.weight * size) for size in (loss.largest_target_size(scale), float(worst)))
    return First(grids, constants, (sizes, losses))


def row_arrays(risk: PointwiseRisk, rows_have_weights: bool, *, keep_margins: bool) -> tuple[str, ...]:
    """The names of the row state arrays, float64."""
    target = ("target",) * (keep_margins and risk.loss.keeps_target)
    return ("z", "z_b") * keep_margins + ("u",) * risk.weighted(rows_have_weights) + target


class Classes(Protocol):
    """Maps labels to class numbers."""

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""


def targets(risk: Classes, chunk: Chunk, numbers: np.ndarray | None = None) -> np.ndarray:
    """The class of each row, int32 (n,), used by kernels as indices. `numbers` of the rows, if they are not consecutive.

    Stores check their labels against the manifest on reading; data from other sources is checked here.
    Raises CorruptError for a label that the manifest does not list.
    """
    target = risk.targets(chunk.y)
    if len(target) and target.min() < 0:
        row = int(np.argmin(target))
        number = 1 + (chunk.first_row + row if numbers is None else int(numbers[row]))
        raise CorruptError(f"row {number:,}: the manifest has no label {chunk.y[row]:g}; see `streamcut info --check`")
    return target
