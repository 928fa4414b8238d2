"""What a solver sees of data with K classes under one loss of all of them: Crammer-Singer's, unless a subclass says another."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.penalty import L2, SQUARES
from streamcut.execution.runner import PassRunner
from streamcut.foundation.rounding import above, gamma
from streamcut.losses.classes import ClassesLoss
from streamcut.oracles import crammer_singer_passes
from streamcut.oracles.decomposable import NOT_NEGATIVE, DecomposableOracle


class MulticlassOracle(DecomposableOracle):
    """F(W) = R(W) + C Σ u_i max_y (1[y ≠ y_i] + ⟨w_y − w_{y_i}, x_i⟩); w is W (D, K) flat, D = d, or d + 1 with a bias.

    R is the `penalty`, ½ Σ_k ‖w_k‖² as a rule.

    keep_margins  rows keep 16 K bytes: what a line search needs
    kinds         the module with the passes of the loss
    """

    kinds: ClassVar[Any] = crammer_singer_passes

    def __init__(
        self, runner: PassRunner, risk: ClassesLoss, *, C: float, bias: float, keep_margins: bool, penalty: L2 = SQUARES
    ) -> None:
        statistics = runner.feed.data.manifest.statistics
        dimension = (statistics.n_features + (bias != 0.0)) * risk.classes
        grids = risk.grids(statistics.n_rows, statistics.weight_sum, max(statistics.max_abs_value, abs(bias)))
        super().__init__(runner, risk, self.kinds, dimension=dimension, C=C, bias=bias, grids=grids, width=risk.classes)
        self.penalty = penalty
        if not keep_margins:
            return
        runner.row_state.add("t", np.int32, within=(0, risk.largest_target))
        for name in ("z", "z_b"):
            runner.row_state.add(name, np.float64, (risk.classes,))
        if statistics.weight_sum is not None:
            runner.row_state.add("u", within=NOT_NEGATIVE)

    @property
    def mean_loss_at_zero(self) -> float:
        return self._risk.at_zero

    @property
    def loss_at_zero(self) -> float:
        total, value = super().loss_at_zero, self.mean_loss_at_zero
        return total if value == 1.0 else above(value * total, gamma(8.0) * value * total)
