"""How exact a computed objective of a linear model is: a rigorous bound on the rounding of ordinary float64 sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamcut.foundation.rounding import UNSEEN, gamma
from streamcut.io.manifest import Statistics
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import LinearModel
from streamcut.models.multiclass import MulticlassModel

_SPARE = 32  # roundings in addition to those counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64


def score_doubt(statistics: Statistics, bias: float, lengths: Any, *, entries: int = 0, longer: float = 0.0) -> Any:
    """How far a score with weights of these `lengths` may be off: a part γ of ‖x‖‖w‖, x the longest row with its bias feature.

    Rows of sequences have `entries` more entries and are longer by `longer`.
    """
    longest = math.sqrt(statistics.max_squared_norm + bias**2) * _LONGER + UNSEEN + longer
    return gamma(statistics.max_row_nnz + _SPARE + entries) * longest * lengths * _LONGER


class ScoreDoubt:
    """`loss`: error bound of a computed Σ u ℓ, if each score may be off by a part γ of ‖x‖‖w‖.

    A convex loss is farthest from ℓ(s) at one end of the interval of s.
    """

    def __init__(self, model: LinearModel, statistics: Statistics) -> None:
        w = model.augmented_weights
        self._near = score_doubt(statistics, model.bias, math.sqrt(float(w @ w)))
        self.loss = 0.0

    def add(self, risk: PointwiseRisk, y: np.ndarray, scores: np.ndarray, u: np.ndarray) -> None:
        """Take rows with targets y, their scores and weights."""
        near = self._near + 2.0 * np.spacing(np.abs(scores))
        if risk.loss.targets == "numbers":
            near += 2.0 * np.spacing(risk.target_sizes(y))
        far = np.maximum(risk.values(y, scores - near), risk.values(y, scores + near))
        off = np.where(far < math.inf, far, 0.0) - np.where(far < math.inf, risk.values(y, scores), -math.inf)
        counts = u > 0.0  # a row of weight 0 may have an infinite loss
        self.loss += float(u[counts] @ off[counts]) + gamma(risk.rounding.near_one) * float(u.sum())


class ClassesDoubt:
    """`losses` (problems,): error bounds of computed Σ u ℓ, if the score of each class may be off by a part γ of ‖x‖‖w_k‖."""

    def __init__(self, model: MulticlassModel, statistics: Statistics, problems: int) -> None:
        self._near = score_doubt(statistics, model.bias, np.sqrt((model.augmented_weights**2).sum(axis=0)))
        self.losses = np.zeros(problems)

    def add(self, loss: Any, target: np.ndarray, scores: np.ndarray, values: np.ndarray, u: np.ndarray) -> None:
        """Take rows of classes `target`, their scores (n, K), their losses (n, problems) by a LossOfClasses, and weights."""
        near = self._near + 2.0 * np.spacing(np.abs(scores))
        far, counts = loss.farthest(target, scores, near), u > 0.0  # a row of weight 0 may have an infinite loss
        self.losses += u[counts] @ (far - values)[counts] + gamma(loss.near_one) * float(u.sum())
