"""A linear model as other programs represent it: a matrix of weights, intercepts, labels, probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.models.link import OwnLink


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


def linear_form(model: Any, program: str, link: OwnLink | None) -> LinearForm:
    """The linear form of `model` with this `link`; raises UsageError when it has none."""
    if not model.of_features or model.whole_groups:
        what = f"task {model.task} by {model.solver}"
        raise UsageError(f"{program} has no models of {what}; those with one weight per feature and class can be exported")
    labels = None if model.labels is None else np.asarray(model.labels)
    if labels is not None and model.label_names:
        labels = model.in_label_words(labels).astype(str)
    counts = model.task == "regression" and model.parameters.get("loss") == "poisson"
    return LinearForm(np.atleast_2d(model.weights.T), np.atleast_1d(model.intercept), labels, link, counts)
