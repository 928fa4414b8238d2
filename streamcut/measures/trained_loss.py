"""The loss that a model was trained with: of single rows, or of K classes, joint or one class against the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.compiled import multiclass
from streamcut.losses import joint_loss, row_loss
from streamcut.losses.joint import JointLoss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import ONE_VS_REST
from streamcut.models.model import Model


class LossOfClasses:
    """A joint loss of all classes, or a loss of single rows for each class against the rest.

    problems   1, or K, one per class
    near_one   roundings of numbers about 1 in a loss (streamcut.foundation.rounding.LossRounding)

    Arrays: target int (n,), the classes of rows; scores (n, K).
    """

    def __init__(self, classes: int, joint: JointLoss | None, rest: PointwiseRisk | None) -> None:
        self._joint, self._rest = joint, rest
        self.problems = classes if joint is None else 1
        self.near_one = (joint or rest).rounding.near_one  # type: ignore[union-attr]

    def values(self, target: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """ℓ of each row in each problem, float64 (n, problems)."""
        if self._rest is not None:
            labels = (np.where(target == k, 1.0, -1.0) for k in range(self.problems))
            return np.stack([self._rest.values(y, scores[:, k]) for k, y in enumerate(labels)], axis=1)
        losses = np.empty(len(target))
        multiclass.losses(self._joint, target, scores, losses)
        return losses[:, None]

    def farthest(self, target: np.ndarray, scores: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The largest ℓ for scores within `near` (n, K): as ℓ is convex, no value there is farther from it. A joint loss rises
        with the scores of all classes but the target, and falls with the target's."""
        if self._rest is not None:
            return np.maximum(self.values(target, scores - near), self.values(target, scores + near))
        moved, rows = scores + near, np.arange(len(target))
        moved[rows, target] = scores[rows, target] - near[rows, target]
        return self.values(target, moved)


def loss_of(model: Any) -> LossOfClasses:
    """The loss that training minimised; for one-vs-rest the hinge unless another is recorded. UsageError for an unknown loss."""
    classes = model.scores_per_row
    if model.strategy == ONE_VS_REST:
        risk = PointwiseRisk(row_loss(model.parameters.get("loss", "hinge"), model.parameters, 1.0))
        return LossOfClasses(classes, None, risk)
    return LossOfClasses(classes, joint_loss(model.strategy)(classes), None)


def risk_of(model: Model) -> PointwiseRisk:
    """The loss that training minimised, with its labels and weights; the hinge for models that were not trained here.

    Raises UsageError for a loss that is not a sum over single rows.
    """
    positive = model.labels[1] if model.labels else 1.0
    return PointwiseRisk(row_loss(model.parameters.get("loss", "hinge"), model.parameters, positive), model.positive_weight)
