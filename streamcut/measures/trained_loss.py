"""The loss that a model was trained with: of single rows, or of K classes, joint or one class against the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.compiled import multiclass
from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import JOINT_LOSSES
from streamcut.losses import joint_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.model import Model
from streamcut.problem import ONE_VS_REST


class TrainedLoss:
    """The losses of rows in the problem of `model`, or in that of each class against the rest.

    problems   1, or K, one per class
    near_one   roundings of numbers about 1 in a loss (streamcut.foundation.rounding.LossRounding)

    Arrays: target (n,) labels or numbers, or of several classes 0 … K − 1; scores (n,), or (n, K).
    Raises UsageError for a loss that is not a sum over rows.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._several = model, bool(model.problem.strategy)
        self._joint = model.problem.loss in JOINT_LOSSES
        classes = model.scores_per_row
        self._loss: Any = joint_loss(model.problem.loss)(classes) if self._joint else PointwiseRisk.of(model.problem)
        self.problems = classes if model.problem.strategy == ONE_VS_REST else 1
        self.near_one = self._loss.rounding.near_one

    def rows(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """(target, u) of rows. Raises BadInputError for a label that the model does not know."""
        if self._several:
            u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            return self._model.classes_of(chunk.y, chunk.first_row), u
        if self._model.labels:
            self._model.is_positive(chunk.y, chunk.first_row)
        return chunk.y, self._loss.weights_of(chunk.y, chunk.weight)

    def values(self, target: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """ℓ of each row in each problem, float64 (n, problems)."""
        if self._joint:
            losses = np.empty(len(target))
            multiclass.losses(self._loss, target, scores, losses)
            return losses[:, None]
        scores = scores.reshape(len(target), -1)
        labels = [np.where(target == k, 1.0, -1.0) for k in range(self.problems)] if self._several else [target]
        return np.stack([self._loss.values(y, scores[:, k]) for k, y in enumerate(labels)], axis=1)

    def farthest(self, target: np.ndarray, scores: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The largest ℓ for scores within `near`, shaped as they are: as ℓ is convex, no value there is farther from it. A joint
        loss rises with the scores of all classes but the target, and falls with the target's."""
        if self._joint:
            moved, rows = scores + near, np.arange(len(target))
            moved[rows, target] = scores[rows, target] - near[rows, target]
            return self.values(target, moved)
        if self._loss.loss.targets == "numbers":
            near = near + 2.0 * np.spacing(self._loss.target_sizes(target))
        return np.maximum(self.values(target, scores - near), self.values(target, scores + near))
