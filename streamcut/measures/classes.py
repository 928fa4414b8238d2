"""The loss of K classes that a model was trained with: joint, or one class against the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from streamcut.compiled import multiclass
from streamcut.losses import joint_loss, row_loss
from streamcut.losses.joint import JointLoss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import ONE_VS_REST


class LossOfClasses(ABC):
    """Arrays: target int (n,), the classes of rows; scores (n, K). `problems`: 1, or K, one per class.

    near_one   roundings of numbers about 1 in a loss (streamcut.foundation.rounding.LossRounding)
    """

    def __init__(self, problems: int, near_one: float) -> None:
        self.problems, self.near_one = problems, near_one

    @abstractmethod
    def values(self, target: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """ℓ of each row in each problem, float64 (n, problems)."""

    @abstractmethod
    def farthest(self, target: np.ndarray, scores: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The largest ℓ for scores within `near` (n, K): as ℓ is convex, no value there is farther from it."""


class _Joint(LossOfClasses):
    """A joint loss: it rises with the scores of all classes but the target, and falls with the target's."""

    def __init__(self, loss: JointLoss) -> None:
        super().__init__(1, loss.rounding.near_one)
        self._loss = loss

    def farthest(self, target, scores, near):
        moved, rows = scores + near, np.arange(len(target))
        moved[rows, target] = scores[rows, target] - near[rows, target]
        return self.values(target, moved)

    def values(self, target, scores):
        losses = np.empty(len(target))
        multiclass.losses(self._loss, target, scores, losses)
        return losses[:, None]


class _OneVsRest(LossOfClasses):
    def __init__(self, classes: int, risk: PointwiseRisk) -> None:
        super().__init__(classes, risk.rounding.near_one)
        self._risk = risk

    def values(self, target, scores):
        labels = (np.where(target == k, 1.0, -1.0) for k in range(self.problems))
        return np.stack([self._risk.values(y, scores[:, k]) for k, y in enumerate(labels)], axis=1)

    def farthest(self, target, scores, near):
        return np.maximum(self.values(target, scores - near), self.values(target, scores + near))


def loss_of(model: Any) -> LossOfClasses:
    """The loss that training minimised; for one-vs-rest the hinge unless another is recorded. UsageError for an unknown loss."""
    if model.strategy == ONE_VS_REST:
        risk = PointwiseRisk(row_loss(model.parameters.get("loss", "hinge"), model.parameters, 1.0))
        return _OneVsRest(model.scores_per_row, risk)
    return _Joint(joint_loss(model.strategy)(model.scores_per_row))
