"""A linear classifier for K classes: one weight vector per class, the highest score wins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES
from streamcut.models.certificate import Certificate, StopReason, Witness, certificate_of_sum
from streamcut.models.few_rows import Row, row_scores
from streamcut.models.labels import class_numbers
from streamcut.models.link import Odds, OwnLink, Softmax
from streamcut.models.model import Model, certificate_result, expect_shape, weights_in_words

ONE_VS_REST = "one-vs-rest"


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassModel(Model):
    """scores(x) = weightsᵀ x + intercepts; predicts the label of the highest, the first among equals.

    weights       float64 (n_features, K)
    intercepts    float64 (K,): weights of the bias feature × `bias`
    bias          value of the constant feature that training added to every row, 0 = none; its weights are regularised, except
                  for free intercepts
    labels        K of them, as the user wrote them, increasing
    strategy      a name of JOINT_LOSSES: one problem for all classes; "one-vs-rest": one per class
    certificates  of the single problem, or of each class in the order of `labels`
    witnesses     proofs of their lower bounds, empty when not kept: slopes as long as `trained_weights` flattened, or
                  as one of its columns
    l1            λ of the penalty ½‖w‖² + λ‖w‖₁ of each problem
    """

    weights: np.ndarray
    intercepts: np.ndarray
    bias: float
    labels: tuple[float, ...]
    C: float
    strategy: str
    certificates: tuple[Certificate, ...]
    witnesses: tuple[Witness, ...] = ()
    l1: float = 0.0

    kind: ClassVar[str] = "multiclass"

    def __post_init__(self) -> None:
        expect_shape("weights", self.weights, len(self.weights), len(self.labels))
        expect_shape("intercepts", self.intercepts, len(self.labels))

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def scores_per_row(self) -> int:
        return len(self.labels)

    @property
    def own_link(self) -> OwnLink | None:
        if self.strategy in JOINT_LOSSES:
            return Softmax() if JOINT_LOSSES[self.strategy].log_odds else None
        loss = ROW_LOSSES.get(self.parameters.get("loss", ""))
        return Odds() if self.strategy == ONE_VS_REST and loss is not None and loss.log_odds else None

    @property
    def augmented_weights(self) -> np.ndarray:
        """float64 (n_features + 1 with a bias feature, K): the variables of training, the bias feature's weights last."""
        if not self.bias:
            return self.weights
        return np.vstack([self.weights, self.intercepts / self.bias])

    @property
    def free(self) -> bool:
        """Whether intercepts are unregularised."""
        return self.parameters.get("intercept") == "free"

    @property
    def trained_weights(self) -> np.ndarray:
        """The regularised weights: `augmented_weights` without free intercepts."""
        return self.weights if self.free else self.augmented_weights

    @property
    def certificate(self) -> Certificate:
        """The certificate of the sum of the problems."""
        return self.certificates[0] if len(self.certificates) == 1 else certificate_of_sum(self.certificates)

    @property
    def converged(self) -> bool:
        return all(certificate.converged for certificate in self.certificates)

    @property
    def stop_reason(self) -> StopReason:
        """Why training ended; for the first class that did not converge, if any."""
        return next((c.stop_reason for c in self.certificates if not c.converged), StopReason.CONVERGED)

    def without_proof(self) -> Self:
        return replace(self, witnesses=())

    def in_words(self) -> str:
        return self._certified() + weights_in_words(self.l1, self.weights, self.parameters)

    def _certified(self) -> str:
        if self.strategy != ONE_VS_REST:
            return self.certificates[0].in_words()
        done = sum(certificate.converged for certificate in self.certificates)
        worst = int(np.argmax([certificate.gap_per_c_bar for certificate in self.certificates]))
        return (
            f"{done} of {len(self.labels)} classes converged. The farthest from its optimum is {self.labels[worst]:g} against "
            f"the rest. {self.certificates[worst].in_words()}"
        )

    def result(self) -> dict[str, Any]:
        if self.strategy != ONE_VS_REST:
            return certificate_result(self.certificates[0])
        names = [f"{label:.17g}" for label in self.labels]
        by_label = {name: certificate_result(c) for name, c in zip(names, self.certificates, strict=True)}
        return {"converged": self.converged, "stop_reason": self.stop_reason, "classes": by_label}

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        from streamcut.compiled import multiclass

        scores = np.empty((chunk.n_rows, len(self.labels)))
        W = np.ascontiguousarray(self.augmented_weights)
        multiclass.scores(chunk.indptr, chunk.indices, chunk.data, W, self.bias, scores)
        return scores

    def score_few(self, rows: list[Row]) -> np.ndarray | None:
        constant = self.bias * (self.intercepts / self.bias) if self.bias else np.zeros(len(self.labels))
        return row_scores(rows, self.weights, constant)  # the constant is rounded as in score_chunk

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels, float64 (n,), that belong to `scores` (n, K)."""
        return np.asarray(self.labels)[scores.argmax(axis=1)]

    def classes_of(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """The class 0 … K − 1 of each label, int64 (n,). Raises BadInputError for a label unknown here."""
        return class_numbers(y, self.labels, first_row)

    def describe(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_nonzero_weights": int(np.count_nonzero(self.weights)),
            "norm": float(np.linalg.norm(self.trained_weights)),
            "free_intercept": self.free,
            "bias": self.bias,
            "classes": len(self.labels),
            "labels": list(self.labels),
            "C": self.C,
            "l1": self.l1,
            "strategy": self.strategy,
            "certificate": self.result(),
            "has_witness": bool(self.witnesses),
        }
