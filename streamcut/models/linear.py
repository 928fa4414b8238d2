"""A linear classifier for two classes, and everything that training knows about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamcut.errors import BadInputError
from streamcut.models.certificate import Certificate, Witness


@dataclass(frozen=True, eq=False)
class LinearModel:
    """score(x) = ⟨weights, x⟩ + intercept; the positive label when it is above 0.

    weights      float64 (n_features,)
    intercept    weight of the bias feature × `bias`
    bias         value of the constant feature that training added to every row, 0 = none; its weight is regularised
    labels       (negative, positive) as the user wrote them
    rest         the negative label stands for every label that is not the positive one
    history      one dict an iteration; parameters: what training was called with (JSON types)
    fingerprint  of the training data (Manifest.fingerprint)
    resources    bytes of memory: budget, planned, peak (of the process that trained)
    witness      proof of the certificate's lower bound, None when it was not kept
    """

    weights: np.ndarray
    intercept: float
    bias: float
    labels: tuple[float, float]
    C: float
    certificate: Certificate
    positive_weight: float = 1.0
    rest: bool = False
    task: str = "binary"
    solver: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    witness: Witness | None = None
    resources: dict[str, int] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def augmented_weights(self) -> np.ndarray:
        """float64 (n_features + 1 with a bias feature): what training minimises over, the bias feature's weight last."""
        if not self.bias:
            return self.weights
        return np.append(self.weights, self.intercept / self.bias)

    def decision_function(self, X) -> np.ndarray:
        """Scores, float64 (n,), of the rows of `X` (n × n_features, NumPy or SciPy sparse).

        Raises BadInputError for another number of features and for values that are not finite.
        """
        if not hasattr(X, "tocsr"):
            X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise BadInputError(f"X has shape {X.shape}, but the model has {self.n_features} features")
        scores = np.asarray(X @ self.weights, dtype=np.float64) + self.intercept
        if not np.isfinite(scores).all():
            raise BadInputError(f"row {int(np.argmin(np.isfinite(scores)))} (0-based) of X gives a score that is not finite")
        return scores

    def predict(self, X) -> np.ndarray:
        """Labels, float64 (n,), of the rows of `X`; raises as `decision_function` does."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels, float64, that belong to `scores`; a score of exactly 0 is negative, as in LIBLINEAR and scikit-learn."""
        negative, positive = self.labels
        return np.where(scores > 0, positive, negative)

    def is_positive(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Which of the labels `y` are the positive one, bool (n,). Raises BadInputError for a label unknown here."""
        negative, positive = self.labels
        found = y == positive
        unknown = ~found & (y != negative)
        if not self.rest and unknown.any():
            row = int(np.argmax(unknown))
            raise BadInputError(
                f"row {first_row + row} (0-based) has label {y[row]:g}, but the model knows only {negative:g} and {positive:g}"
            )
        return found
