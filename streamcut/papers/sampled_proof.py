"""The certificate of a mixture of sampled cuts: F(w) over all rows, and a lower bound on min F. One pass.

In the cut of a sample each example represents many, so a mixture of cuts gives some examples more than the C u_i that the dual
allows: Σ over wrong answers ŷ of α_i,ŷ ≤ C u_i. Scaling each example's α_i down to that limit gives a feasible point of the
dual, whose value Σ α_i,ŷ Δ_i(ŷ) − ½‖w′‖² is a valid lower bound, however the cuts were drawn. Its
w′ = Σ α_i,ŷ (Ψ(x_i, y_i) − Ψ(x_i, ŷ)) uses the same rows as w, so the pass that scores all rows by w scores them by w′ with
the same kernel values, and obtains ‖w′‖². With samples of all examples no scaling is needed, and the bound is that of the
exact cuts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from streamcut.compiled.vectors import accumulate
from streamcut.errors import CorruptError
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.rounding import above, exact_rounder, gamma, spacing
from streamcut.io.manifest import Statistics
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.models.certificate import DualPoint
from streamcut.oracles.kernel_columns import TILE, squared_norms
from streamcut.oracles.row_passes import targets
from streamcut.papers.sampled_passes import Expansion
from streamcut.papers.sampled_tasks import SampledTask

_SPARE = 16  # roundings of a few sums and products


@dataclass(frozen=True, slots=True)
class Proof:
    """primal ≥ F(w) ≥ min F ≥ the value of `point`, a feasible point of the dual; `raised` was added to F for rounding."""

    primal: float
    lower_bound: float
    point: DualPoint
    raised: float


class Share(NamedTuple):
    """A cut's contribution to the dual: α_i,ŷ of each row x_k of its wrongly answered examples (n,)."""

    cut: Expansion
    alpha: np.ndarray


def shares_of(live: list[tuple[Expansion, float]], C: float) -> list[Share]:
    """The shares of cuts with these coefficients in w, each example's α scaled down to the C u_i that the dual allows."""
    by_first: dict[int, list[float]] = {}
    limits: dict[int, float] = {}
    shares = [Share(cut, beta * np.abs(cut.factors[:, 0])) for cut, beta in live]
    for cut, alphas in shares:
        begins = np.append(True, cut.first[1:] != cut.first[:-1])  # all rows of an example share its α
        columns = (array[begins].tolist() for array in (cut.first, alphas, C * cut.weight))
        for first, alpha, limit in zip(*columns, strict=True):
            by_first.setdefault(first, []).append(alpha)
            limits[first] = limit
    totals = {first: math.fsum(alphas) for first, alphas in by_first.items()}
    scales = {first: min(1.0, limits[first] / total) if total > 0.0 else 1.0 for first, total in totals.items()}
    return [Share(cut, alpha * np.array([scales[first] for first in cut.first.tolist()])) for cut, alpha in shares]


@dataclass(slots=True)
class ProofSums:
    """Σ u loss, ‖·‖² of w's and of w′'s expansions, each as (total, rounding lost); the dense part of w′; a bound on
    the error of Σ u loss.
    """

    dense: np.ndarray
    loss: np.ndarray = field(default_factory=lambda: np.zeros(2))
    square: np.ndarray = field(default_factory=lambda: np.zeros(2))
    dual_square: np.ndarray = field(default_factory=lambda: np.zeros(2))
    doubt: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True, slots=True)
class ProofPass(Pass):
    """Loss at w = Σ_k coefficients[k] φ(x_k) and `dense`, and both norms.

    support   the rows x_k, with the factors of w in the first half of the columns and those of w′ in the second
    vectors   of these rows
    w, dual   their coefficients (n, columns)
    shares    scaled, for tasks with groups, whose w′ has a dense part; its terms are on the grid of `rounder`
    squares   ‖x_k‖², of the kernel's centred rows; `entries`: the most of a row; `constant` is added to the kernel
    """

    task: SampledTask
    kernel: Kernel
    support: Expansion
    vectors: Vectors
    w: np.ndarray
    dual: np.ndarray
    shares: list[Share]
    rounder: float
    squares: np.ndarray
    entries: int
    constant: float
    interruptible: ClassVar[bool] = True
    row_arrays: ClassVar[tuple[str, ...]] = ()

    @property
    def blocks(self) -> Blocks:
        return Blocks(groups=self.task.groups)

    def begin(self, first_row: int) -> ProofSums:
        return ProofSums(np.zeros(self.task.dense))

    def visit_chunk(self, sums: ProofSums, rows: Rows, chunk: Chunk) -> None:
        both = self.support.scores(self.vectors, chunk)
        finite = np.isfinite(both).all(axis=1)
        if not finite.all():
            row = chunk.first_row + int(np.argmin(finite)) + 1
            raise CorruptError(f"row {row}: its score is not finite; scale the features")
        columns = self.task.columns
        z = np.ascontiguousarray(both[:, :columns])
        starts = group_starts(chunk) if self.task.groups else np.arange(chunk.n_rows + 1)
        target = targets(self.task, chunk)
        _, loss, _ = self.task.judge(starts, target, z, self.support.dense)
        weight = self.task.weights(starts, chunk.y, chunk.weight)
        accumulate(weight * loss, sums.loss)
        accumulate(weight * self._doubts(chunk, starts, z), sums.doubt)
        here, local = _within(self.support.numbers, chunk)
        accumulate((self.w[here] * z[local]).sum(axis=1), sums.square)
        accumulate((self.dual[here] * both[local, columns:]).sum(axis=1), sums.dual_square)
        for share in self.shares:
            self._add_transitions(share, chunk, starts, target, sums.dense)

    def score_doubt(self, coefficients: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Error bounds on scores by these coefficients (n, columns), for rows with ‖x‖² = `squares`."""
        return self.kernel.rounding(squares, self.squares, coefficients, self.entries, self.constant)

    def _doubts(self, chunk: Chunk, starts: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Error bounds on each example's loss, the best sum of scores and transitions of its rows."""
        scores = self.score_doubt(self.w, squared_norms(self.kernel.moved(chunk)))
        sizes = 1.0 + 2.0 * (np.abs(z).max(axis=1) + float(np.abs(self.support.dense).max(initial=0.0)))
        scores, sizes = (np.add.reduceat(values, starts[:-1]) for values in (scores, sizes))
        return 2.0 * scores + gamma(1) * (2.0 * np.diff(starts) + _SPARE) * sizes

    def _add_transitions(self, share: Share, chunk: Chunk, starts: np.ndarray, target: np.ndarray, out: np.ndarray) -> None:
        """Add the sequences of a cut to the dense part: α times the targets' transitions less those of the path."""
        here, local = _within(share.cut.numbers, chunk)
        if here.start == here.stop:
            return
        path, alpha = target.copy(), np.zeros(len(target))
        path[local], alpha[local] = share.cut.columns[here, 0], share.alpha[here]
        behind = np.ones(len(target), bool)
        behind[starts[:-1]] = False  # rows with a predecessor in their sequence
        i = 1 + np.flatnonzero((alpha[1:] + alpha[:-1] > 0.0) & behind[1:])
        weight = np.maximum(alpha[i], alpha[i - 1])  # of the same sequence, or 0 where a row is correct
        weight = (weight + self.rounder) - self.rounder
        K = self.task.columns
        np.add.at(out, target[i - 1].astype(np.int64) * K + target[i], weight)
        np.add.at(out, path[i - 1].astype(np.int64) * K + path[i], -weight)

    def merge(self, total: ProofSums, part: ProofSums) -> ProofSums:
        total.dense += part.dense
        accumulate(part.loss, total.loss)
        accumulate(part.square, total.square)
        accumulate(part.dual_square, total.dual_square)
        accumulate(part.doubt, total.doubt)
        return total


def _within(numbers: np.ndarray, chunk: Chunk) -> tuple[slice, np.ndarray]:
    """The slice of the increasing row numbers that lies in a chunk, and their indices there."""
    first, last = np.searchsorted(numbers, (chunk.first_row, chunk.first_row + chunk.n_rows))
    return slice(int(first), int(last)), numbers[first:last] - chunk.first_row


def proof_pass(task: SampledTask, kernel: Kernel, support: Expansion, w: np.ndarray, dual: np.ndarray, shares: list[Share],
               bias: float, statistics: Statistics) -> ProofPass:  # fmt: skip
    """The pass for w and w′ with these coefficients of the rows of `support`, whose `dense` is w's."""
    longest = statistics.max_row_nnz + (0 if kernel.centre is None else len(kernel.centre.index))
    both = np.concatenate((w, dual), axis=1)
    terms = max(int(np.count_nonzero(both, axis=1).max()), 1)
    columns = np.argsort(both == 0.0, axis=1, kind="stable")[:, :terms].astype(np.int32)  # nonzero ones first
    factors = np.take_along_axis(both, columns.astype(np.int64), axis=1)
    most = 4.0 * sum(float(share.alpha.sum()) for share in shares)  # each row has two neighbours, each adds and subtracts
    support = replace(support, columns=columns, factors=factors, constant=bias**2 * both.sum(axis=0))
    groups = shares if task.groups else []
    return ProofPass(
        task, kernel, support, Vectors(kernel, support.rows, statistics.n_features, tile=TILE, kept=False), w, dual, groups,
        exact_rounder(most), squared_norms(kernel.moved(support.rows)), longest + task.columns + len(shares), bias**2,
    )  # fmt: skip


def proof(sums: ProofSums, work: ProofPass, C: float) -> Proof:
    """The certificate from the sums of the pass, including rounding, also in products of scores and coefficients, as many
    as columns, and in the sums over cuts that form the coefficients.
    """
    dense, rounding = work.support.dense, gamma(len(sums.dense) + _SPARE)
    half, loss = 0.5 * (float(sums.square.sum()) + float(dense @ dense)), float(sums.loss.sum())
    doubt = 0.5 * (_square_doubt(work, work.w) + rounding * float(dense @ dense)) + C * float(sums.doubt.sum())
    primal = above(half + C * loss, doubt + gamma(2 * _SPARE) * (half + C * loss))
    square = float(sums.dual_square.sum()) + float(sums.dense @ sums.dense)
    off = 2.0 * spacing(work.rounder) * sum(len(share.alpha) for share in work.shares)  # half a grid step for each of four terms
    size = float(np.abs(sums.dense).max(initial=0.0)) + off
    doubt = _square_doubt(work, work.dual) + 2.0 * size * off + rounding * float(sums.dense @ sums.dense)
    offset = DualPoint(work.dual, sums.dense).offset
    theta = 1.0 if square <= offset else offset / square  # along the ray the dual is a parabola
    point = DualPoint(theta * work.dual, theta * sums.dense)
    return Proof(primal, point.value(theta * theta * square, theta * theta * doubt), point, primal - (half + C * loss))


def _square_doubt(work: ProofPass, coefficients: np.ndarray) -> float:
    """Bound on the difference between Σ c f(x) over the support and ‖w‖², without its dense part."""
    return float(np.abs(coefficients).sum(axis=1) @ work.score_doubt(coefficients, work.squares))
