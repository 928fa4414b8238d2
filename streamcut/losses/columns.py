"""Problems on the same rows, side by side: columns. Each has a class, a C, a λ, and a fold of rows that it leaves out.

A problem with a joint loss of K classes is a group of K columns, one a class (streamcut.compiled.groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.losses.joint import JointLoss
from streamcut.losses.loss import Loss, OfLabels
from streamcut.losses.pointwise import PointwiseRisk


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
