"""The risk of single rows: mean of u_i ℓ(z_i), for oracles, `verify` and measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.compiled import row_losses
from streamcut.foundation.rounding import Grids, LossRounding
from streamcut.losses import row_loss
from streamcut.losses.loss import Loss, TargetScale
from streamcut.problem import Problem


@dataclass(frozen=True, slots=True)
class PointwiseRisk:
    """`loss` of each row; weights of rows with its positive label are multiplied by `positive_weight`.

    Row weights u are None when all are 1. Arrays are float64 (n,). For groups of columns, `loss` is a JointLoss: it has what
    oracles of columns ask.
    """

    loss: Loss
    positive_weight: float = 1.0

    @classmethod
    def of(cls, problem: Problem) -> PointwiseRisk:
        """The risk in `problem`; of one class against the rest, 1 is the label of the class.

        Raises UsageError for a loss that is not a sum over single rows.
        """
        positive = problem.labels[1] if problem.labels and not problem.strategy else 1.0
        return cls(row_loss(problem.loss, dict(problem.options), positive), problem.positive_weight)

    @property
    def rounding(self) -> LossRounding:
        return self.loss.rounding

    def weighted(self, rows_have_weights: bool) -> bool:
        """Whether rows have weights other than 1."""
        return rows_have_weights or self.positive_weight != 1.0

    def weights(self, y: np.ndarray, weight: np.ndarray | None, rounder: float, out: np.ndarray) -> float:
        """u of each row into `out`; returns their sum on a grid."""
        return row_losses.row_weights(self.loss, y, weight, self.positive_weight, rounder, out)

    def weights_of(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """u of each row."""
        u = np.empty(len(y))
        self.weights(y, weight, 0.0, u)
        return u

    def values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """ℓ of each row."""
        out = np.empty(len(y))
        row_losses.values(self.loss, y, scores, out)
        return out

    def duals(self, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(σ f, constants, sizes): at any other score s′ the loss of a row is at least −σ f s′ + constant; roundings of constants
        are relative to `sizes`."""
        signed, constants, sizes = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
        row_losses.duals(self.loss, y, scores, signed, constants, sizes)
        return signed, constants, sizes

    def target_sizes(self, y: np.ndarray) -> np.ndarray:
        """Loss.target_size of each row."""
        out = np.empty(len(y))
        row_losses.target_sizes(self.loss, y, out)
        return out

    def scale(self, weight: float, lowest: float, highest: float) -> TargetScale:
        """The scale of rows with total weight `weight` before label weights, and targets from `lowest` to `highest`."""
        weight *= max(1.0, self.positive_weight)
        if self.loss.targets == "labels":
            return TargetScale(weight, 0.0, 0.0, 0.0, weight * self.loss.at_zero)
        worst = max(self.loss.value(-self.loss.offset(y), y) for y in (lowest, highest))  # it is convex in y
        return TargetScale(weight, lowest, highest, weight * max(abs(lowest), abs(highest)), weight * worst)

    def grids(self, rows: int, scale: TargetScale, largest: float) -> Grids:
        """The grids of sums over `rows` rows with |values| up to `largest`."""
        shares, constants, limit = self.loss.largest_sums(rows, scale)
        return Grids.holding(largest * max(scale.weight, shares), max(scale.weight, constants))._replace(limit=limit)
