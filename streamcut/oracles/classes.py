"""The oracle of K classes with one joint loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2, SQUARES
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import EPSILON, above, gamma
from streamcut.losses.classes import ClassesRisk
from streamcut.oracles import classes_passes
from streamcut.oracles.decomposable import Cut, DecomposableOracle

_WHOLE = 1.0 + 2.0**-40  # Σ u of M, regardless of the grid of the sum


class MulticlassOracle(DecomposableOracle):
    """F(W) = R(W) + C Σ u_i ℓ_i(x_i W), ℓ the loss of `risk`; w is W (D, K) flat, D = d, or d + 1 with a bias.

    R is the `penalty`, ½ Σ_k ‖w_k‖² as a rule.

    Rows keep 16 K bytes: what a line search needs.
    """

    def __init__(self, runner: Runner, risk: ClassesRisk, *, C: float, bias: float, penalty: L2 = SQUARES) -> None:
        statistics = runner.feed.data.manifest.statistics
        dimension = (statistics.n_features + (bias != 0.0)) * risk.classes
        grids = risk.grids(statistics.n_rows, statistics.weight_sum, max(statistics.max_abs_value, abs(bias)))
        super().__init__(runner, risk, classes_passes, dimension=dimension, C=C, bias=bias, grids=grids, width=risk.classes)
        self.penalty = penalty
        runner.row_state.add("t", np.int32)
        for name in ("z", "z_b"):
            runner.row_state.add(name, np.float64, (risk.classes,))
        if statistics.weight_sum is not None:
            runner.row_state.add("u")

    @property
    def mean_loss_at_zero(self) -> float:
        return self._risk.at_zero

    @property
    def loss_at_zero(self) -> float:
        total, value = super().loss_at_zero, self.mean_loss_at_zero
        return total if value == 1.0 else above(value * total, gamma(8.0) * value * total)

    @property
    def _smooth(self) -> bool:
        return self._risk.loss.smooth

    def slopes(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvatures of Σ u_i ℓ_i at each w_b + k(w − w_b)."""
        slopes, curvatures = zip(*(self._look("SlopesPass", float(each)) for each in k), strict=True)
        return np.sum(slopes, axis=1), np.sum(curvatures, axis=1)

    def _look(self, kind: str, *given: Any) -> Any:
        return super()._look(kind, *given, self._risk.loss)

    def _divided(self, a: np.ndarray, b: np.ndarray) -> Cut:
        """As in DecomposableOracle; of a smooth loss ‖a‖ is bounded by Σ u / M = 1, not by b.

        There a row's own coefficient is a sum over the other classes, with as many roundings; its constant has numbers about 1 in
        it.
        """
        if not self._smooth:
            return super()._divided(a, b)
        M, risk = self.total_weight, self._risk
        a[0] /= M
        offset = float(b.sum()) / M
        size = self._scale.length * _WHOLE * (1.0 + risk.classes * EPSILON)
        error = self._scale.cut_error(self._grids, size, abs(offset) + _WHOLE, M, risk.rounding)
        return Cut(a[0], offset, error._replace(slope=error.slope + gamma(risk.classes) * size))
