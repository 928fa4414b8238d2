"""The oracle of Newton's method: a pass that also sums the curvature of the loss, H = Σ u_i ℓ″(z_i) x_i x_iᵀ."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.compiled import second_order, vectors
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.systems import one_blas_thread
from streamcut.io.manifest import Statistics
from streamcut.losses.huber import Huber
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.smoothed import Smoothed, Widened
from streamcut.models.certificate import Cut
from streamcut.oracles import row_passes
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import CutSums, ScorePass, SlopesPass

_COPIED = 1024  # features: NumPy factorises a copy; SciPy works in place, but takes a tenth of a second to import
_DENSE = 0.25  # of the features: rows with more entries are added as dense ones
_INSIDE = 0.05  # of the requested gap: accuracy to which models with λ‖w‖₁ are minimised
# Kinks: their first width, in units of a margin or the farthest target; what a narrower one is of the last; and the part of the
# requested gap that a width may cost.
_WIDTH, _NARROWER, _COST = 2.0, 0.35, 0.5
_FINEST = 1e-12  # of the first: scores are not known much better
_MOST = 0.1  # of the farthest target: many are no farther
_SOME = 1e-300  # where all targets are 0


@dataclass(slots=True)
class CurvedSums(CutSums):
    """CutSums with the lower triangle of the `curvature` (D, D), and the `slack` of the cut at w (total, rounding lost)."""

    curvature: np.ndarray = field(default_factory=partial(np.zeros, (0, 0)))
    slack: np.ndarray = field(default_factory=partial(np.zeros, 2))


@dataclass(frozen=True, slots=True)
class CurvedPass(ScorePass):
    """Scores at `w`, the loss and the cut there, and the curvature of `model`; `dense`: rows have most features."""

    model: Loss | Smoothed | Widened | None = None
    dense: bool = False

    def begin(self, first_row: int) -> CurvedSums:
        plain, D = ScorePass.begin(self, first_row), len(self.w)
        return CurvedSums(plain.a, plain.b, plain.loss, plain.totals, np.zeros((D, D)))

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        assert isinstance(sums, CurvedSums)
        ScorePass.visit_chunk(self, sums, rows, chunk)
        h, entries = np.empty(chunk.n_rows), (chunk.indptr, chunk.indices, chunk.data)
        second_order.curvatures(self.model, rows["z"], chunk.y, rows.get("u"), h, sums.slack)
        if self.dense:
            together = np.empty((second_order.TOGETHER, len(self.w)))
            second_order.add_dense(*entries, h, self.bias, together, sums.curvature)
        else:
            second_order.add_sparse(*entries, h, self.bias, sums.curvature)

    @staticmethod
    def merge(total: CutSums, part: CutSums) -> CutSums:  # type: ignore[override]
        assert isinstance(total, CurvedSums)
        assert isinstance(part, CurvedSums)
        vectors.add(total.curvature.reshape(-1), part.curvature.reshape(-1))
        vectors.accumulate(part.slack, total.slack)
        return row_passes.merge(total, part)


class SecondOrderOracle(LinearOracle):
    """A linear oracle that, after each pass at a w, holds R's slope and curvature there. Kinks of the loss have a width.

    at, slope, curvature   that w (D,), −Σ u_i ℓ′ σ_i x_i there (D,), and the lower triangle of H (D, D); all independent of C
    """

    kept: tuple[str, ...] = (*LinearOracle.kept, "_slack", "_kink_width", "at", "slope", "curvature")

    def __init__(self, runner: Runner, risk: PointwiseRisk, *, C: float, bias: float, free: bool = False) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, free=free)
        D = self.dimension
        self.at, self.slope, self.curvature = np.zeros(D), np.zeros(D), np.zeros((D, D))
        self._dense = dense_rows(runner.feed.data.manifest.statistics, D)
        self._slack = 0.0  # Σ u_i ℓ_i at `at`, less the cut there
        self.widen()

    @property
    def _widest(self) -> float:
        """The width of kinks at first, within which all rows are at w = 0; of Huber's loss, within which many are."""
        if isinstance(self._loss, Huber):
            return max(self._loss.delta, _MOST * self._targets.farthest)
        return _WIDTH * (1.0 if self._loss.targets == "labels" else max(self._targets.farthest, _SOME))

    def widen(self) -> None:
        """Give kinks their first width."""
        self._kink_width = self._widest

    def _sharpen(self, fall: float, allowed: float) -> None:
        """Narrow the kinks where their width costs more than Newton's next step gains (`fall`), and much of the allowed gap."""
        cost = self.C * self._slack
        if fall < cost > _COST * allowed:
            least = self._loss.delta if isinstance(self._loss, Huber) else _FINEST * self._widest
            self._kink_width = max(_NARROWER * self._kink_width, least)

    @property
    def _modelled(self) -> Loss | Smoothed | Widened:
        """The loss whose slopes and curvature Newton's method uses."""
        if isinstance(self._loss, Huber):
            return Widened(self._loss, self._kink_width)
        return self._loss if self._loss.smooth else Smoothed(self._loss, self._kink_width)

    def slopes(self, k: np.ndarray) -> np.ndarray:
        return self._look(SlopesPass(k, self._modelled))[0].sum(axis=1)

    def expand(self, w: np.ndarray) -> Cut:
        """One pass: the margins of w and the cut there; slope and curvature are then those at w."""
        self._scored(w)
        loss = self._modelled
        risk = replace(self._risk, loss=loss)
        work = CurvedPass(risk, self._grids, w, self._bias, kappa=1.0, at_w=True, model=loss, dense=self._dense)
        return self._cut(self._read(work))

    def _first_pass(self, w: np.ndarray) -> Pass:
        options = {"first": self._first, "model": self._modelled, "dense": self._dense}
        return CurvedPass(self._risk, self._grids, w, self._bias, at_w=True, **options)  # type: ignore[arg-type]

    def _read(self, work: Pass) -> Any:
        sums = super()._read(work)
        if isinstance(work, CurvedPass):
            self.at, self.curvature = work.w.copy(), sums.curvature
            self.slope, self._slack = -(sums.a.sum(axis=0)), float(sums.slack.sum())
        return sums

    def newton(self, allowed: float, ridge: float = 1.0) -> np.ndarray | None:
        """argmin of R + C·(the quadratic model of the loss at `at`): Newton's next point; None where float64 finds none.

        Where that model has kinks of a width, it may be narrower from the next pass on. `allowed` is the requested gap.
        """
        model = self.penalty, self.C, self.at, self.slope
        w = quadratic_minimum(*model, self.curvature, _INSIDE * allowed, ridge)
        if w is None and self.penalty.free and not self._loss.smooth:  # a free intercept, and no row is near a kink
            self.curvature[-1, -1] += 0.5 / self._widest * self.total_weight * self._bias**2
            w = quadratic_minimum(*model, self.curvature, _INSIDE * allowed, ridge)
        if w is not None:
            price, l1 = _prices(self.penalty, self.dimension, ridge), _thresholds(self.penalty, self.dimension)
            fall = vectors.dot(self.C * self.slope - price * self.at, w - self.at)
            self._sharpen(0.5 * (fall + float(l1 @ (np.abs(self.at) - np.abs(w)))), allowed)
        return w


def quadratic_minimum(
    penalty: L2, C: float, at: np.ndarray, slope: np.ndarray, curvature: np.ndarray, tolerance: float = 0.0, ridge: float = 1.0
) -> np.ndarray | None:
    """argmin of R + C·(the quadratic of this slope, pointing down, and curvature at `at`); None where float64 finds none.

    `ridge` is that of R. With λ‖w‖₁, to a `tolerance`: coordinate descent finds the signs, a Cholesky factorisation the
    weights.
    """
    D = len(at)
    if D > _COPIED:
        import scipy.linalg  # noqa: F401  (before its threads are detected)
    with one_blas_thread():
        Q, price = C * curvature, _prices(penalty, D, ridge)
        Q[np.diag_indices(D)] += price
        if penalty.threshold is None:
            step = _solved(Q, C * slope - price * at)
            return None if step is None else at + step
        Q = np.tril(Q) + np.tril(Q, -1).T
        q = C * slope + (Q @ at - price * at)
        if not np.isfinite(q).all() or not Q[-1, -1] > 0.0:  # a free intercept may have no curvature
            return None
        return _sparse_minimum(Q, q, _thresholds(penalty, D), at.copy(), ridge * tolerance)


def _prices(penalty: L2, D: int, ridge: float) -> np.ndarray:
    """The curvature of R along each weight, float64 (D,): 0 for a free intercept."""
    price = np.full(D, ridge)
    price[D - penalty.free :] = 0.0
    return price


def _thresholds(penalty: L2, D: int) -> np.ndarray:
    """λ of each weight, float64 (D,): 0 for a free intercept."""
    l1 = np.full(D, penalty.threshold or 0.0)
    l1[D - penalty.free :] = 0.0
    return l1


def dense_rows(statistics: Statistics, dimension: int) -> bool:
    """Whether rows have enough features for their products to be summed as those of dense rows."""
    return statistics.nnz > _DENSE * statistics.n_rows * dimension


def _solved(Q: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """Q⁻¹q from the lower triangle of Q, which is overwritten; None where it is not positive definite or not finite."""
    factor = _factor(Q)
    if factor is None:
        return None
    second_order.solve(factor, x := q.copy())
    return x if np.isfinite(x).all() else None


def _factor(Q: np.ndarray) -> np.ndarray | None:
    """L of Q = LLᵀ, in its lower triangle; entries above it are undefined."""
    if len(Q) <= _COPIED:
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(Q)
        return None
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(Q.T, lower=0, overwrite_a=1)  # Q.T is in Fortran order: nothing is copied
    return None if failed else factor.T


_SWEEPS, _TURNS = 10, 50


def _sparse_minimum(Q: np.ndarray, q: np.ndarray, l1: np.ndarray, w: np.ndarray, tolerance: float) -> np.ndarray:
    """argmin ½wᵀQw − ⟨q, w⟩ + Σ_j l1_j |w_j|, starting from w, until half the square of a subgradient is at most `tolerance`."""
    for _ in range(_TURNS):
        second_order.descend(Q, Q @ w - q, l1, _SWEEPS, w)
        if _left(Q, q, l1, w) <= tolerance:
            break
        active = np.flatnonzero((w != 0.0) | (l1 == 0.0))
        while len(active) > 0:  # signs stay fixed; a weight that changes sign becomes 0, unless it has no λ
            signs = np.sign(w[active])
            solution = _solved(Q[np.ix_(active, active)], q[active] - l1[active] * signs)
            if solution is None:
                break
            wrong = (np.sign(solution) != signs) & (l1[active] > 0.0)
            if not wrong.any():
                w[active] = solution
                break
            part = w[active][wrong] / (w[active][wrong] - solution[wrong])
            w[active] += part.min() * (solution - w[active])
            w[active[np.flatnonzero(wrong)[part <= part.min()]]] = 0.0
            active = np.flatnonzero((w != 0.0) | (l1 == 0.0))
        if _left(Q, q, l1, w) <= tolerance:
            break
    return w


def _left(Q: np.ndarray, q: np.ndarray, l1: np.ndarray, w: np.ndarray) -> float:
    """Upper bound on the remaining gain: half the square of the shortest subgradient at w."""
    slope = Q @ w - q
    short = np.where(w != 0.0, slope + l1 * np.sign(w), np.sign(slope) * np.maximum(np.abs(slope) - l1, 0.0))
    return 0.5 * float(short @ short)
