"""A linear model: one weight vector, for two classes, numbers or a ranking, or one for each of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import expect_shape
from streamcut.loss_table import JOINT_LOSSES, LOG_ODDS
from streamcut.models.certificate import Cut
from streamcut.models.few_rows import Row, row_scores
from streamcut.models.link import Odds, OwnLink, Sigmoid, SoftmaxLink
from streamcut.models.model import Model


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearModel(Model):
    """scores(x) = weightsᵀ x + intercept.

    weights    float64 (n_features,), or (n_features, K) for K classes
    intercept  a number, or float64 (K,): weights of the constant feature × its value `problem.bias`; of one class −ρ
    proofs  proofs of the lower bounds of `certificates`, none when they were not kept: slopes as long as `trained_weights`
               flattened, or as one of its columns
    """

    weights: np.ndarray
    intercept: float | np.ndarray
    proofs: tuple[Cut, ...] = ()

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        expect_shape("weights", self.weights, len(self.weights), *self.weights.shape[1:2])
        expect_shape("intercept", self.intercept, *self.weights.shape[1:])
        super().__post_init__()

    @property
    def _width(self) -> int:
        return len(self.weights)

    @property
    def scores_per_row(self) -> int:
        return 1 if self.weights.ndim == 1 else self.weights.shape[1]

    @property
    def of_features(self) -> bool:
        return self.map is None

    @property
    def augmented_weights(self) -> np.ndarray:
        """float64 (d,) or (d, K); d + 1 with a bias feature, whose weights are last: the variables of training."""
        if not self.problem.bias:
            return self.weights
        return np.concatenate([self.weights, np.expand_dims(self.intercept / self.problem.bias, 0)])

    @property
    def trained_weights(self) -> np.ndarray:
        """The regularised weights: without free intercepts, and without one-class's offset, which follows from the others; of
        sequences with `transitions`."""
        return self.weights if self.problem.free else self.augmented_weights

    def in_words(self) -> str:
        said = super().in_words()
        if not (l1 := self.problem.l1):
            return said
        most, weights = self.parameters.get("l1_max"), self.weights
        part = "" if most is None else f", {100.0 * l1 / most:.3g} % of λmax,"
        return f"{said} With l1 = {l1:g}{part} {np.count_nonzero(weights):,} of {weights.size:,} weights are not 0."

    @property
    def own_link(self) -> OwnLink | None:
        if self.problem.loss not in LOG_ODDS:
            return None
        joint: OwnLink = SoftmaxLink() if self.problem.loss in JOINT_LOSSES else Odds()
        return Sigmoid() if self.task == "binary" else joint

    def _scores(self, chunk: Chunk) -> np.ndarray:
        from streamcut.compiled import linear, multiclass

        rows, bias = (chunk.indptr, chunk.indices, chunk.data), self.problem.bias
        if self.weights.ndim == 1:
            scores = np.empty(chunk.n_rows)
            linear.scores(*rows, np.ascontiguousarray(self.augmented_weights), bias, scores)
            return scores
        scores = np.empty((chunk.n_rows, self.scores_per_row))
        if self.transitions is not None:
            multiclass.scores(*rows, self.weights, 0.0, scores)
            return scores + self.intercept
        multiclass.scores(*rows, np.ascontiguousarray(self.augmented_weights), bias, scores)
        return scores

    def score_few(self, rows: list[Row]) -> np.ndarray | None:
        if self.map is not None or self.transitions is not None:
            return None
        bias = self.problem.bias
        constant = bias * (self.intercept / bias) if bias else 0.0  # rounded as in _scores
        return row_scores(rows, self.weights, constant)

    def _described(self) -> dict[str, object]:
        several = {"classes": self.scores_per_row, "strategy": self.problem.strategy} if self.scores_per_row > 1 else {}
        return {
            "n_nonzero_weights": int(np.count_nonzero(self.weights)),
            "norm": float(np.sqrt(sum(float(np.vdot(w, w)) for w in (self.trained_weights, self.transitions) if w is not None))),
            "free_intercept": self.problem.free,
            "bias": self.problem.bias,
            **({"intercept": self.intercept} if self.weights.ndim == 1 else several),
            "l1": self.problem.l1,
            "l1_only": self.problem.l1_only,
        }
