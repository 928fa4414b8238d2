"""A linear model as other programs know it: a matrix of weights, intercepts, labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.errors import UsageError
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Scores are X @ weights.T + intercepts.

    weights      float64 (K, n_features); K is 1 for two classes, a ranking or a regression
    intercepts   float64 (K,)
    labels       (K,), or (negative, positive), as the user wrote them: floats or words; None: scores are the answer
    """

    weights: np.ndarray
    intercepts: np.ndarray
    labels: np.ndarray | None


def linear_form(model: Model, program: str) -> LinearForm:
    """The linear form of `model`; raises UsageError when it has none."""
    if isinstance(model, MulticlassModel):
        labels = np.asarray(model.labels)
        return LinearForm(model.weights.T, model.intercepts, _words(model, labels))
    if isinstance(model, LinearModel):
        two = None if model.labels is None else _words(model, np.asarray(model.labels))
        return LinearForm(model.weights[None, :], np.array([model.intercept]), two)
    raise UsageError(f"{program} has no models of kind {model.kind}; models with one weight a feature and class can be exported")


def _words(model: Model, labels: np.ndarray) -> np.ndarray:
    return model.in_label_words(labels).astype(str) if model.label_names else labels
