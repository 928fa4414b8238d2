"""The weights of linear models by the names of features and classes."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from streamcut.errors import UsageError
from streamcut.models.files import as_model
from streamcut.models.model import Model

SORTS = ("magnitude", "weight", "feature")


class Weight(NamedTuple):
    """What one feature adds to the score of a class per unit of its value.

    label    the class: a word, or a number; of two classes the positive one; None: a ranking
    feature  number of the feature, 0-based, None for the intercept
    name     its name, "" if it has none (numbered features, and hashed ones)
    """

    label: str | float | None
    feature: int | None
    name: str
    weight: float


def weights(
    model: Model | str | os.PathLike, *, top: int | None = None, sort: str = "magnitude", label: Any = None
) -> list[Weight]:
    """See streamcut.api."""
    if sort not in SORTS:
        raise UsageError(f"sort: {sort!r} is not one of {', '.join(SORTS)}")
    if top is not None and top < 0:
        raise UsageError(f"top: {top} is less than 0")
    model = as_model(model)
    columns = classes_of(model, label)
    matrix, intercepts = model.weights, np.atleast_1d(model.intercept)  # type: ignore[attr-defined]
    found: list[Weight] = []
    for column, of in columns:
        if intercepts[column]:
            found.append(Weight(of, None, "(intercept)", float(intercepts[column])))
        w = matrix if matrix.ndim == 1 else matrix[:, column]
        for j in _order(w, top, sort).tolist():
            found.append(Weight(of, j, model.feature_name(j), float(w[j])))
    return found


def classes_of(model: Model, label: Any) -> list[tuple[int, Any]]:
    """(column of the matrix of weights, the name of its class) for each requested class, all without a `label`.

    Raises UsageError for a model without weights of features, and for a label that it does not have.
    """
    if not model.of_features or model.n_features == 0:
        what = "with features of a kernel" if model.map is not None else f"a {model.kind} model"
        raise UsageError(f"{what} has no weights of features; linear ones have")
    labels: Any = model.labels
    if model.scores_per_row == 1:
        columns = [(0, None if labels is None else model.label_word(labels[1]))]
    else:
        columns = [(k, model.label_word(number)) for k, number in enumerate(labels)]
    if label is None:
        return columns
    wanted = [
        (k, word) for k, word in columns if word is not None and label in (word, word if isinstance(word, str) else f"{word:g}")
    ]
    if not wanted:
        known = ", ".join(str(word) for _, word in columns[:10])
        raise UsageError(f"label: {label!r} has no weights; there are weights of {known}")
    return wanted


def _order(w: np.ndarray, top: int | None, sort: str) -> np.ndarray:
    """The features in the requested order; ties by index."""
    chosen = np.flatnonzero(w)
    chosen = chosen[np.argsort(-np.abs(w[chosen]), kind="stable")][:top]
    if sort == "feature":
        return np.sort(chosen)
    if sort == "weight":
        chosen = np.sort(chosen)
        return chosen[np.argsort(-w[chosen], kind="stable")]
    return chosen
