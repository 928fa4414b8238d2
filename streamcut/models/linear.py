"""A linear model with one weight vector: a classifier for two classes, a regression, or a ranking function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.models.certificate import Certificate, Witness
from streamcut.models.few_rows import Row, row_scores
from streamcut.models.labels import positive_rows
from streamcut.models.link import Link, Sigmoid
from streamcut.models.model import CertifiedModel, expect_shape, weights_in_words


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(CertifiedModel):
    """score(x) = ⟨weights, x⟩ + intercept; the positive label when it is above 0.

    weights      float64 (n_features,)
    intercept    weight of the bias feature × `bias`
    bias         value of the constant feature that training added to every row, 0 = none; its weight is regularised, except for
                 one class, where the intercept is −ρ, and for a free intercept
    labels       (negative, positive) as the user wrote them; None for numbers, and for a ranking, which only orders rows
    l1           λ of the penalty ½‖w‖² + λ‖w‖₁ of training, or of λ‖w‖₁ alone
    rest         the negative label stands for every label that is not the positive one
    witness      proof of the certificate's lower bound, None when it was not kept
    """

    weights: np.ndarray
    intercept: float
    bias: float
    labels: tuple[float, float] | None
    C: float
    certificate: Certificate
    positive_weight: float = 1.0
    rest: bool = False
    witness: Witness | None = None
    l1: float = 0.0

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        expect_shape("weights", self.weights, len(self.weights))

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def augmented_weights(self) -> np.ndarray:
        """float64 (n_features + 1 with a bias feature): the weights used for scoring, the bias feature's last."""
        if not self.bias:
            return self.weights
        return np.append(self.weights, self.intercept / self.bias)

    @property
    def trained_weights(self) -> np.ndarray:
        """The regularised weights: without a free intercept, and without one-class's offset, which follows from the others."""
        return self.weights if self.task == "one-class" or self.free else self.augmented_weights

    @property
    def free(self) -> bool:
        """Whether the intercept is unregularised."""
        return self.parameters.get("intercept") == "free"

    def without_proof(self) -> Self:
        return replace(self, witness=None)

    def in_words(self) -> str:
        return super().in_words() + weights_in_words(self.l1, self.weights, self.parameters)

    @property
    def own_link(self) -> Link | None:
        loss = ROW_LOSSES.get(self.parameters.get("loss", ""))
        return Sigmoid() if self.task == "binary" and loss is not None and loss.log_odds else None

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        from streamcut.compiled import linear

        scores = np.empty(chunk.n_rows)
        linear.scores(chunk.indptr, chunk.indices, chunk.data, np.ascontiguousarray(self.augmented_weights), self.bias, scores)
        return scores

    def score_few(self, rows: list[Row]) -> np.ndarray | None:
        constant = self.bias * (self.intercept / self.bias) if self.bias else 0.0  # rounded as in score_chunk
        return row_scores(rows, self.weights, constant)

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels, float64, that belong to `scores`; a score of exactly 0 is negative, as in LIBLINEAR and scikit-learn.

        A ranking predicts the scores, a regression what its loss makes of them.
        """
        if self.task == "regression":
            return row_loss(self.parameters["loss"], self.parameters).prediction(scores)
        if self.labels is None:
            return scores
        negative, positive = self.labels
        return np.where(scores > 0, positive, negative)

    def is_positive(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Which of the labels `y` are the positive one, bool (n,). Raises BadInputError for a label unknown here."""
        if self.labels is None:
            raise UsageError(f"a model of task {self.task} has no labels to compare with")
        return positive_rows(y, self.labels, self.rest, first_row)

    def describe(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_nonzero_weights": int(np.count_nonzero(self.weights)),
            "norm": float(np.linalg.norm(self.trained_weights)),
            "intercept": self.intercept,
            "free_intercept": self.free,
            "bias": self.bias,
            "labels": None if self.labels is None else list(self.labels),
            "C": self.C,
            "l1": self.l1,
            "l1_only": bool(self.parameters.get("l1_only")),
            "positive_weight": self.positive_weight,
            "rest": self.rest,
            "certificate": self.result(),
            "has_witness": self.witness is not None,
        }
