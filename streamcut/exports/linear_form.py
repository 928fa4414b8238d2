"""A linear model as other programs represent it: a matrix of weights, intercepts, labels, probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.errors import UsageError
from streamcut.models.linear import LinearModel
from streamcut.models.link import OwnLink
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Scores are X @ weights.T + intercepts.

    weights      float64 (K, n_features); K is 1 for two classes, a ranking or a regression
    intercepts   float64 (K,)
    labels       (K,), or (negative, positive), as the user wrote them: floats or words; None: scores are the answer
    link         turns scores into probabilities; None: there are none
    exponential  the answer is e^score: a mean count
    """

    weights: np.ndarray
    intercepts: np.ndarray
    labels: np.ndarray | None
    link: OwnLink | None
    exponential: bool = False


def linear_form(model: Model, program: str, link: OwnLink | None) -> LinearForm:
    """The linear form of `model` with this `link`; raises UsageError when it has none."""
    if isinstance(model, MulticlassModel):
        labels = np.asarray(model.labels)
        return LinearForm(model.weights.T, model.intercepts, _words(model, labels), link)
    if isinstance(model, LinearModel):
        two = None if model.labels is None else _words(model, np.asarray(model.labels))
        counts = model.task == "regression" and model.parameters.get("loss") == "poisson"
        return LinearForm(model.weights[None, :], np.array([model.intercept]), two, link, counts)
    raise UsageError(f"{program} has no models of kind {model.kind}; those with one weight per feature and class can be exported")


def _words(model: Model, labels: np.ndarray) -> np.ndarray:
    return model.in_label_words(labels).astype(str) if model.label_names else labels
