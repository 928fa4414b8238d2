"""The oracle of a loss of single rows: one number of w for each feature, and one for the intercept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.bundle.intercept import Plane
from streamcut.bundle.penalty import FreeIntercept
from streamcut.compiled import vectors
from streamcut.execution.passes import Pass
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import Drift, above, gamma, loss_above, spacing
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Cut
from streamcut.oracles.decomposable import DecomposableOracle, longest
from streamcut.oracles.row_passes import Equal, RowPass, ScorePass, SlopesPass, StepPass, Totals, first_of, row_arrays

_LEAST_UNIT = 1e-6  # of the mean loss at w = 0
# Of a line's slope at 0, and of its k, where the loss has kinks: OCAS takes 37 passes over ijcnn1, 39 with the usual part of the
# slope. Newton's steps end near k = 1 and take as many passes with either.
_CLOSE = {"flat": 1e-3, "narrow": 1e-4}
_FARTHEST = 1e280


class LinearOracle(DecomposableOracle):
    """The oracle of a loss of single rows: w of length d, or d + 1 with a bias feature."""

    kept: tuple[str, ...] = (*DecomposableOracle.kept, "_reach", "_targets", "unit", "sides")

    def __init__(
        self, runner: Runner, risk: PointwiseRisk, *, C: float, bias: float, keep_margins: bool, free: bool = False,
        width: int = 1,
    ) -> None:  # fmt: skip
        statistics = runner.feed.data.manifest.statistics
        dimension, self._largest = statistics.n_features + (bias != 0.0), max(statistics.max_abs_value, abs(bias))
        weight = float(statistics.n_rows) if statistics.weight_sum is None else statistics.weight_sum
        self._targets = risk.scale(weight, statistics.label_min, statistics.label_max)
        self.equal = risk.loss.targets == "numbers" and self._targets.lowest == self._targets.highest
        grids = risk.grids(statistics.n_rows, self._targets, self._largest)
        super().__init__(runner, risk, dimension=dimension, C=C, bias=bias, grids=grids, width=width)
        self._first = first_of(risk.loss, self._targets, self._largest)
        middle = risk.loss.middle(self._targets) if risk.loss.targets == "numbers" else 0.0
        self._equal = Equal(middle, grids)
        if free:
            self.penalty = FreeIntercept()
            self._first = replace(self._first, equal=self._equal)
        self._learning = self._first.grids
        self._loss, self._margins = risk.loss, keep_margins
        self._reach = Drift()  # as `_drift`, for a single row
        self._near, self._steepest = 0.0, 0.0  # of the current scores: their error, and the largest share there
        for name in row_arrays(risk, statistics.weight_sum is not None, keep_margins=keep_margins):
            runner.row_state.add(name)

    @property
    def sides(self) -> tuple[Plane, ...]:
        """The cuts that bound a free intercept."""
        return self.penalty.sides

    @sides.setter
    def sides(self, cuts: tuple[Plane, ...]) -> None:
        self.penalty = replace(self.penalty, sides=cuts)

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        w = np.zeros(self.dimension) if w is None else w
        sums = self._read(self._first_pass(w))
        self._learn(sums.totals)
        self._scored(w)
        cut, loss = self._cut(sums), self._loss_at(w, sums.loss)
        if self._loss.targets == "numbers":  # they are known now: grids may be finer
            self._grids = self._risk.grids(self._scale.rows, self._targets, self._largest)
        return cut, loss

    def refine(self) -> bool:
        if self._grids.folds > 1:
            return False
        self._grids = self._grids.finer(self._scale.rows)
        return True

    def _first_pass(self, w: np.ndarray) -> Pass:
        return self._scores(w, at_w=True, first=self._first)

    def _scores(self, w: np.ndarray, **more: Any) -> ScorePass:
        return ScorePass(self._risk, self._grids, w, self._bias, **more)

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        sums = self._read(self._scores(w, at_w=True))
        return self._cut(sums), self._loss_at(w, sums.loss)

    def score(self, w: np.ndarray) -> None:
        """One pass: the margins of w, for the line search."""
        self._scored(w)
        self._read(self._scores(w))

    def score_and_cut(self, w: np.ndarray, kappa: float) -> Cut:
        """One pass: the margins of w, and the cut at w_b + κ(w − w_b), whose margins follow row by row."""
        self._scored(w)
        return self._cut(self._read(self._scores(w, kappa=kappa)))

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) from known margins."""
        return self._cut(self._read(self._scores(np.zeros(self.dimension), kappa=mu, cut_only=True)))

    def line_search(self, A0: float, B0: float, more: Callable[[np.ndarray], np.ndarray] | None = None) -> float:
        """The k ≥ 0 that minimises F at w_b + k(w − w_b), where A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩. The data is not read.

        `more`: the slope of the penalty along the line, where that is not k·A0 + B0.
        """

        def slopes(k: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):  # e^s may overflow
                slope = (k * A0 + B0 if more is None else more(k)) + self.C * self.slopes(k)
            return np.where(np.isnan(slope), np.inf, slope)

        close = {} if self._loss.smooth else _CLOSE
        return float(two_cuts.minimise(slopes, 1, farthest=_FARTHEST, **close)[0])

    def _learn(self, totals: Totals) -> None:
        super()._learn(totals)
        if totals.sides is not None:
            self.sides = tuple(self._divided(a, b) for a, b in zip(totals.sides.a, totals.sides.b, strict=True))
        if self._loss.targets == "labels":
            return
        n, value = self._scale.rows, self._loss.rounding
        sizes, losses = (n * spacing(rounder) for rounder in self._first.rounders)
        far = above(float(totals.numbers[0]), sizes + gamma(16.0) * float(totals.numbers[0]))
        least = float(totals.numbers[2:].min())
        at_zero, constant = (above(t, losses + gamma(16.0 + value.value) * t) for t in (float(totals.numbers[1]), least))
        weight = self._all_weight()
        at_zero = above(at_zero, gamma(value.near_one) * weight)
        self._targets = self._targets._replace(weight=weight, targets=far, loss_at_zero=at_zero)
        self.raised = at_zero - float(totals.numbers[1])  # until another loss is summed
        self._drift.best, self._reach.best = (of(np.zeros(self.dimension)) for of in (self._spread, self._longest))
        if totals.numbers[1] > 0.0:  # else w = 0 has no loss, and there is no unit
            least = at_zero if self.equal else _LEAST_UNIT * at_zero
            self.unit = max(min(constant, at_zero), least) / self.total_weight

    @property
    def kinked(self) -> bool:
        """Whether the loss is piecewise linear, and its kinks along lines are known: optimal intercepts may be an interval."""
        return self._margins and not self._loss.smooth

    def constant(self) -> np.ndarray:
        """With a free intercept, the w that gives all rows the same, central score."""
        w = np.zeros(self.dimension)
        if self._bias:
            w[-1] = self._equal.score / self._bias
        return w

    def best_intercept(self, w_b: np.ndarray) -> float | None:
        """The best move of a free intercept at w_b, in units of scores, if the margins suffice to find it."""
        return None

    @property
    def mean_loss_at_zero(self) -> float:
        return self._loss.at_zero if self._loss.targets == "labels" else self._targets.loss_at_zero / self.total_weight

    @property
    def loss_at_zero(self) -> float:
        if self._loss.targets == "numbers":
            return self._targets.loss_at_zero
        total, value = super().loss_at_zero, self.mean_loss_at_zero
        return total if value == 1.0 else above(value * total, gamma(8.0) * value * total)

    def slopes(self, k: np.ndarray) -> np.ndarray:
        """Slopes of Σ u_i ℓ_i at each w_b + k(w − w_b); at kinks, those to the right. The data is not read."""
        return self._look(SlopesPass(k, self._loss))[0].sum(axis=1)

    def loss_scored(self, w: np.ndarray) -> float:
        """Upper bound on Σ u_i ℓ_i at w, which must be the point scored last. The data is not read."""
        return self._loss_at(w, self._look(StepPass(None, self._loss)))

    def step(self, k: float, w_b: np.ndarray) -> float:
        self._reach.step(k, self._longest(w_b), self._scale)
        self._near = self._reach.error
        loss = self._look(StepPass(k, self._loss))
        self._drift.step(k, self._spread(w_b), self._scale)
        return self._loss_above(self._summed(loss), self._drift.error)

    def doubt(self, k: float) -> float:
        steepest = self._loss.steepest(self._steepest, self._reach.ahead(k, self._scale), self._targets)
        return steepest * self._drift.ahead(k, self._scale)

    def _scored(self, w: np.ndarray) -> None:
        super()._scored(w)
        self._reach.scored = self._longest(w)

    def _loss_at(self, w: np.ndarray, computed: np.ndarray) -> float:
        self._near = self._reach.fresh(self._longest(w), self._scale)
        return super()._loss_at(w, computed)

    def _spread(self, w: np.ndarray) -> float:
        return super()._spread(w) + self._targets.targets

    def _longest(self, w: np.ndarray) -> float:
        """Upper bound on Σ_j |x_ij w_j| + target_size over rows i."""
        return longest(self._scale, w) + self._loss.largest_target_size(self._targets)

    def _summed(self, sums: np.ndarray) -> float:
        self._steepest = float(sums[2])
        return float(sums[:2].sum())

    def _loss_above(self, computed: float, error: float) -> float:
        slope = self._loss.steepest(self._steepest, self._near, self._targets)
        rounding = self._loss.rounding._replace(slope=slope)
        loss = loss_above(computed, self._scale.rows, self.total_weight, error, rounding)
        self.raised = loss - computed
        return loss

    def _divided(self, a: np.ndarray, b: np.ndarray) -> Cut:
        """As in DecomposableOracle; b (4,) as in streamcut.compiled.row_losses.cut_coefficients."""
        return self._divided_by(self.total_weight, a, b)

    def _divided_by(self, M: float, a: np.ndarray, b: np.ndarray) -> Cut:
        """As `_divided`, for rows of total weight M."""
        scale, grids = self._cut_scale, self._grids
        if len(a) > 1:
            vectors.add(a[0], a[1])
        a[0] /= M
        shares = sizes = offset = float(b[:2].sum()) / M
        if self._loss.sized():
            more = 2.0 * grids._replace(fine_weight=0.0).weight_error(scale.rows)  # their sums are on coarse grids
            shares, sizes = ((b[2:] + more) / M).tolist()
        return Cut(a[0], offset, scale.cut_error(grids, scale.length * shares, sizes, M, self._loss.rounding))

    def _look(self, work: RowPass) -> Any:
        """The result of a pass over the row state."""
        return self._runner.run(work)[0]
