"""Weights of linear models by the names of features and classes, and why a row has its score: what each feature adds to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from streamcut.data.inputs import Raw, rows_of
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import word
from streamcut.io.sources.lazy import framed
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.prediction import as_rows, scored_chunks, warn_of

TOP = 10  # parts of an explanation
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

    @property
    def shown(self) -> str:
        """Its name, or else its number."""
        return self.name or f"feature {self.feature}"


def weights(
    model: Model | str | os.PathLike, *, top: int | None = None, sort: str = "magnitude", label: str | float | None = None
) -> list[Weight]:
    """See streamcut.api."""
    if sort not in SORTS:
        raise UsageError(f"sort: {sort!r} is not one of {', '.join(SORTS)}")
    if top is not None and top < 0:
        raise UsageError(f"top: {top} is less than 0")
    model = as_model(model)
    columns = classes_of(model, label)
    linear = cast(LinearModel, model)  # others have no weights of features
    matrix, intercepts = linear.weights, np.atleast_1d(linear.intercept)
    listed: list[Weight] = []
    for column, of in columns:
        if intercepts[column]:
            listed.append(Weight(of, None, "(intercept)", float(intercepts[column])))
        w = matrix if matrix.ndim == 1 else matrix[:, column]
        for j in _order(w, top, sort).tolist():
            listed.append(Weight(of, j, model.feature_name(j), float(w[j])))
    return listed


def greatest(model: Model, top: int, several: int, classes: int = 8) -> dict[str, list[Weight]]:
    """The weights greatest in magnitude, without intercepts, by class: `top` for the positive one of two, `several` for each of
    the first `classes` of more. Empty for models without weights of features."""
    if not model.of_features or model.n_features == 0:
        return {}
    by_label: dict[str, list[Weight]] = {}
    for weight in weights(model, top=top if model.scores_per_row == 1 else several):
        of = by_label.setdefault(word(weight.label), [])
        of += [weight] * (weight.feature is not None)
    return dict(list(by_label.items())[:classes])


def classes_of(model: Model, label: str | float | None) -> list[tuple[int, str | float | None]]:
    """(column of the matrix of weights, the name of its class) for each requested class, all without a `label`.

    Raises UsageError for a model without weights of features, and for a label that it does not have.
    """
    if not model.of_features or model.n_features == 0:
        what = "with features of a kernel" if model.map is not None else f"a {model.kind} model"
        raise UsageError(f"{what} has no weights of features; linear ones have")
    columns: list[tuple[int, str | float | None]]
    columns = [(k, model.label_word(number)) for k, number in enumerate(model.labels or ())]
    if model.scores_per_row == 1:
        columns = [(0, columns[1][1] if columns else None)]
    if label is None:
        return columns
    wanted: list[tuple[int, str | float | None]] = [
        (k, name) for k, name in columns if name is not None and label in (name, word(name))
    ]
    if not wanted:
        names = ", ".join(str(name) for _, name in columns[:10])
        raise UsageError(f"label: {label!r} has no weights; there are weights of {names}")
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


class Part(NamedTuple):
    """What a feature adds to a score: weight · (value − its value in the row of comparison).

    feature  its number, 0-based; name: "" where it has none
    """

    feature: int
    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """score = base + what the parts add + others, up to rounding.

    row      its number, 0-based
    label whose score it is, a word or a number: of two classes the positive one, of several the requested one or the one with
             the highest score; None: a ranking or a regression
    base     the score of the row of comparison
    parts    the largest in magnitude first
    others   what all other features add together
    """

    row: int
    label: str | float | None
    score: float
    base: float
    parts: tuple[Part, ...]
    others: float


def explain(
    model: Model | str | os.PathLike, data: object, *, top: int | None = TOP, label: str | float | None = None,
    against: object = None, ignore_extra_features: bool = False, strict: bool = False, raw: Raw | None = None,
) -> list[Explanation]:  # fmt: skip
    """See streamcut.api."""
    reading = raw or Raw(labelled=False)
    reading.strict |= strict
    explanations = list(
        explained(model, data, top=top, label=label, against=against, raw=reading, ignore_extra_features=ignore_extra_features)
    )
    if raw is None:
        warn_of(reading.unseen)
    return explanations


def explained(
    model: Model | str | os.PathLike,
    data: object,
    *,
    top: int | None = TOP,
    label: str | float | None = None,
    against: object = None,
    raw: Raw,
    ignore_extra_features: bool = False,
    ceiling: Ceiling | None = None,
) -> Iterator[Explanation]:
    """The same, row by row, within `ceiling`: the other arguments of `explain`."""
    if top is not None and top < 0:
        raise UsageError(f"top: {top} is less than 0")
    model = as_model(model, lambda size: None if ceiling is None else ceiling.expect_model(size))
    classes = dict(classes_of(model, label))
    linear = cast(LinearModel, model)  # others have no weights of features
    intercepts, weights = np.atleast_1d(linear.intercept), linear.weights.reshape(model.n_features, -1)
    mean = None if against is None else _mean(model, against)
    base = intercepts if mean is None else intercepts + mean @ weights
    rows = as_rows(model, framed(data), ignore_extra_features)
    for chunk, scores in scored_chunks(model, rows, ignore_extra_features=ignore_extra_features, raw=raw, ceiling=ceiling):
        scores = scores.reshape(chunk.n_rows, -1)
        for row in range(chunk.n_rows):
            k = next(iter(classes)) if len(classes) == 1 else int(np.argmax(scores[row]))
            parts, others = _parts(model, chunk, row, weights[:, k], mean, top)
            yield Explanation(chunk.first_row + row, classes[k], float(scores[row, k]), float(base[k]), parts, others)


def _parts(
    model: Model, chunk: Chunk, row: int, w: np.ndarray, mean: np.ndarray | None, top: int | None
) -> tuple[tuple[Part, ...], float]:
    """(the parts of a row, the sum of all others)."""
    entries = slice(chunk.indptr[row], chunk.indptr[row + 1])
    features = chunk.indices[entries]
    values = np.ones(len(features)) if chunk.data is None else chunk.data[entries].astype(np.float64)
    if mean is None:
        adds = values * w[features]
    else:
        there = np.zeros(len(w))
        there[features] = values
        features, values, adds = np.arange(len(w)), there, (there - mean) * w
    order = np.argsort(-np.abs(adds), kind="stable")[: np.count_nonzero(adds)]
    listed, rest = (order, order[:0]) if top is None else (order[:top], order[top:])
    parts = [
        Part(int(features[at]), model.feature_name(int(features[at])), float(values[at]), float(adds[at]))
        for at in listed.tolist()
    ]
    return tuple(parts), float(adds[rest].sum())


def _mean(model: Model, data: object) -> np.ndarray:
    """The mean row, float64 (n_features). Raises BadInputError for features that the model does not have."""
    total, weight = np.zeros(model.n_features), 0.0
    for chunk in rows_of(as_rows(model, framed(data), False), model.recipe, Raw(labelled=False)):
        used = slice(chunk.indptr[0], chunk.indptr[-1])
        features, values = chunk.indices[used], 1.0 if chunk.data is None else chunk.data[used].astype(np.float64)
        if len(features) and features.max() >= model.n_features:
            raise BadInputError(f"against: feature {features.max()} (0-based), but the model has {model.n_features:,} features")
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        total += np.bincount(features, values * np.repeat(u, np.diff(chunk.indptr)), minlength=model.n_features)
        weight += float(u.sum())
    if not weight > 0.0:
        raise BadInputError("against: no rows, or none with a weight")
    return total / weight
