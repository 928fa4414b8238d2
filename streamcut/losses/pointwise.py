"""The risk of single rows: mean of u_i ℓ(z_i), for oracles, `verify` and measures; and of columns, problems on the same rows.

Each column has a class, a C, a λ, and a fold of rows that it leaves out. A problem with a joint loss of K classes is a group of K
columns, one a class (streamcut.compiled.groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import row_losses
from streamcut.foundation.rounding import Grids, LossRounding
from streamcut.losses import row_loss
from streamcut.losses.joint import JointLoss
from streamcut.losses.loss import Loss, OfLabels, TargetScale
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


@dataclass(frozen=True, slots=True)
class Column:
    """min ½‖w‖² + l1‖w‖₁ + C Σ u_i ℓ(⟨w, x_i⟩; y_i) over the rows of all folds but `fold` (−1: over all rows).

    of_class  number of the class whose rows are positive, among the labels of the risk
    """

    C: float
    l1: float = 0.0
    of_class: int = 0
    fold: int = -1


@dataclass(frozen=True, slots=True)
class ColumnsRisk:
    """The loss common to all columns.

    pointwise  loss and weights of rows; with classes, its positive label is used for two classes only
    labels     of the classes, increasing, of two (negative, positive); None: targets are numbers. With `rest` every label but
               labels[1] is labels[0]
    folds      gives rows their folds (streamcut.io.row_view.Folds); None: there are none
    """

    pointwise: PointwiseRisk
    labels: tuple[float, ...] | None
    rest: bool = False
    folds: Any = None

    @property
    def group(self) -> int | None:
        """The columns of a problem with a joint loss; None: a problem is a column."""
        loss = self.pointwise.loss
        return loss.classes if isinstance(loss, JointLoss) else None

    @property
    def width(self) -> int:
        """The columns of a problem."""
        return self.group or 1

    @property
    def loss(self) -> Loss:
        """The loss for kernels: targets of labels are 1 and −1."""
        loss = self.pointwise.loss
        return loss._replace(positive=1.0) if isinstance(loss, OfLabels) else loss

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""
        assert self.labels is not None
        if self.rest:
            return (y == self.labels[1]).astype(np.int32)
        if len(self.labels) == 2:
            negative, positive = self.labels
            return np.where(y == positive, 1, np.where(y == negative, 0, -1)).astype(np.int32)
        classes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        return np.where(np.asarray(self.labels)[classes] == y, classes, -1).astype(np.int32)


def values_of(columns: Sequence[Column], name: str, dtype: Any = np.float64) -> np.ndarray:
    """One field of all columns."""
    return np.array([getattr(column, name) for column in columns], dtype)
