"""A first-order linear chain: labels whole sequences of rows (equal qid) by emissions and transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.compiled import multiclass
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.losses.sequence import SequenceRisk
from streamcut.models.certificate import Certificate, StopReason, Witness
from streamcut.models.kernel import KernelModel
from streamcut.models.labels import class_numbers
from streamcut.models.model import CertifiedModel, Model, common_parts, expect_shape


class ChainModel(Model):
    """Base of sequence models: scores of rows become labels by the best path through `transitions`.

    transitions  float64 (K, K): [j, k] for labels[k] after labels[j]
    labels       K of them, as the user wrote them, increasing
    """

    transitions: np.ndarray
    labels: tuple[float, ...]
    whole_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        expect_shape("transitions", self.transitions, len(self.labels), len(self.labels))

    @property
    def scores_per_row(self) -> int:
        return len(self.labels)

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels, float64 (n,), of rows with these scores, taken as one sequence."""
        return self._labelled(scores, np.array([0, len(scores)]))

    def labels_of_chunk(self, chunk: Chunk, scores: np.ndarray) -> np.ndarray:
        """The labels, float64 (n,); rows of one qid are a sequence; without qid all rows are one."""
        return self._labelled(scores, self.starts(chunk))

    def classes_of(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """The class 0 … K − 1 of each label, int64 (n,). Raises BadInputError for a label unknown here."""
        return class_numbers(y, self.labels, first_row)

    def starts(self, chunk: Chunk) -> np.ndarray:
        """int64 (S + 1): the first row of each sequence of `chunk`, then the number of rows."""
        return np.array([0, chunk.n_rows]) if chunk.qid is None else group_starts(chunk)

    def predict(self, X, qid: Any = None) -> np.ndarray:
        """Labels, float64 (n,), of the rows of `X`; without `qid` they are one sequence. Raises as `decision_function` does."""
        scores = self.decision_function(X)
        if qid is None:
            return self.labels_of(scores)
        qid = np.asarray(qid)
        if qid.shape != (len(scores),):
            raise BadInputError(f"qid has shape {qid.shape}, but X has {len(scores)} rows")
        return self._labelled(scores, np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1, [len(qid)])))

    def _labelled(self, scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
        if len(scores) == 0:
            return np.empty(0)
        path = SequenceRisk(self.labels).best(starts, np.ascontiguousarray(scores), self.transitions)
        return np.asarray(self.labels)[path]


@dataclass(frozen=True, eq=False, repr=False)
class SequenceModel(ChainModel, CertifiedModel):
    """A labelling scores Σ_t ⟨weights[:, y_t], x_t⟩ + intercepts[y_t] + Σ_t transitions[y_t−1, y_t]; the best one is predicted.

    weights      float64 (n_features, K)
    intercepts   float64 (K,): weights of the bias feature × `bias`
    bias         value of the constant feature that training added to every row, 0 = none; its weights are regularised
    witness      proof of the certificate's lower bound, None when it was not kept: its slope is as long as `trained_weights`
    """

    weights: np.ndarray
    intercepts: np.ndarray
    transitions: np.ndarray
    bias: float
    labels: tuple[float, ...]
    C: float
    certificate: Certificate
    witness: Witness | None = None

    kind: ClassVar[str] = "sequence"

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_shape("weights", self.weights, len(self.weights), len(self.labels))
        expect_shape("intercepts", self.intercepts, len(self.labels))

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def augmented_weights(self) -> np.ndarray:
        """Weights of all emissions, (d, K), or (d + 1, K) with those of the bias feature last."""
        return self.weights if self.bias == 0.0 else np.vstack([self.weights, self.intercepts / self.bias])

    @property
    def trained_weights(self) -> np.ndarray:
        """The variables of training, flat: the emissions row by row, then the transitions."""
        return np.concatenate((self.augmented_weights.ravel(), self.transitions.ravel()))

    def without_proof(self) -> Self:
        return replace(self, witness=None)

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        scores = np.empty((chunk.n_rows, len(self.labels)))
        multiclass.scores(chunk.indptr, chunk.indices, chunk.data, self.weights, 0.0, scores)
        return scores + self.intercepts

    def describe(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_nonzero_weights": int(np.count_nonzero(self.weights)),
            "norm": float(np.sqrt(sum(float(np.vdot(a, a)) for a in (self.weights, self.transitions)))),
            "bias": self.bias,
            "labels": list(self.labels),
            "C": self.C,
            "certificate": self.result(),
            "has_witness": self.witness is not None,
        }


@dataclass(frozen=True, eq=False, repr=False)
class KernelSequenceModel(ChainModel):
    """Like SequenceModel, with row scores from a kernel model, one per label.

    emissions  a KernelModel with K scores
    """

    emissions: KernelModel
    transitions: np.ndarray

    kind: ClassVar[str] = "kernel-sequence"

    @classmethod
    def around(cls, emissions: KernelModel, transitions: np.ndarray) -> Self:
        """The model with these emissions and their record of training."""
        return cls(emissions=emissions, transitions=transitions, **{**common_parts(emissions), "task": "sequence"})

    @property
    def labels(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.emissions.labels

    @property
    def certificate(self) -> Certificate | None:
        return self.emissions.certificate

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return self.emissions.certificates

    @property
    def n_features(self) -> int:
        return self.emissions.n_features

    @property
    def converged(self) -> bool:
        return self.emissions.converged

    @property
    def stop_reason(self) -> StopReason:
        return self.emissions.stop_reason

    def in_words(self) -> str:
        return self.emissions.in_words()

    def result(self) -> dict[str, Any]:
        return self.emissions.result()

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        return self.emissions.score_chunk(chunk)

    def describe(self) -> dict[str, Any]:
        return self.emissions.describe()
