"""The quality of a model on a data set, for reports: its measures and the data of plots, all from one pass over the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.evaluation import collect
from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.chunk import Chunk
from streamcut.measures.separation import Separation, Thresholds
from streamcut.models.model import Model
from streamcut.reports.drawing import BLUE, COLOURS, GREY, ORANGE, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NAMES = 12  # classes that fit in a confusion table
_BINS = 60

Plots = dict[str, tuple[str, "Figure"]]


@dataclass(frozen=True)
class Quality:
    """The measures of a model (JSON types), plots with their captions, and for two classes the data of the curves."""

    measures: dict[str, Any]
    plots: Plots = field(default_factory=dict)
    curves: Thresholds | None = None


def quality(model: Model, data: Any, ceiling: Ceiling | None = None) -> Quality:
    """`model` on what `evaluate` takes. Keeps 8 bytes per row for classes, 16 for a regression. Raises as `evaluate`."""
    residuals = _Residuals(model)
    collected = collect(model, data, beside=[residuals] if model.task == "regression" else [], ceiling=ceiling)
    measures = collected.measures()
    if model.task == "regression":
        return Quality(measures, residuals.plots())
    plots: Plots = {}
    curves = None
    separation: Separation | None = getattr(collected, "separation", None)
    if separation is not None and separation.of_two:
        curves = separation.thresholds()
        plots = _curve_plots(curves) | {"scores": ("Scores of both classes", _histogram(separation, class_names(model)))}
    if measures.get("reliability"):
        several = "confusion_matrix" in measures
        plots["reliability"] = "Reliability of probabilities", _reliability(measures["reliability"], several)
    if len(measures.get("labels", ())) > _MOST_NAMES and "confusion_matrix" in measures:
        plots["confusion"] = "Confusion, in parts of each true class", _confusion(measures["confusion_matrix"])
    return Quality(measures, plots, curves)


def class_names(model: Model) -> tuple[str, str]:
    """The names of the (negative, positive) class."""
    labels = getattr(model, "labels", None)
    if labels is None or len(labels) != 2:
        return "negative", "positive"
    low, high = (model.label_word(label) for label in labels)
    return tuple(name if isinstance(name, str) else f"{name:g}" for name in (low, high))  # type: ignore[return-value]


def confusion_of(measures: Mapping[str, Any], names: tuple[str, str]) -> tuple[list[list[float]], list[str]] | None:
    """(weight of rows by true and predicted class, names), None if the measures have no classes or too many."""
    if "true_positives" in measures:
        counts = ("true_negatives", "false_positives"), ("false_negatives", "true_positives")
        return [[measures[name] for name in row] for row in counts], list(names)
    labels = measures.get("labels", ())
    if "confusion_matrix" not in measures or len(labels) > _MOST_NAMES:
        return None
    return measures["confusion_matrix"], [f"{label:g}" if isinstance(label, float) else str(label) for label in labels]


def most_confused(measures: Mapping[str, Any], count: int = 15) -> list[dict[str, Any]]:
    """The most often confused pairs of several classes, as records of a table."""
    if "confusion_matrix" not in measures:
        return []
    matrix = np.array(measures["confusion_matrix"])
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)
    order = np.argsort(-wrong, axis=None, kind="stable")[:count]
    labels, totals = measures["labels"], matrix.sum(axis=1)
    pairs = [divmod(int(place), len(matrix)) for place in order]
    return [
        {"true class": labels[t], "called": labels[p], "rows": wrong[t, p], "part of the class": wrong[t, p] / totals[t]}
        for t, p in pairs
        if wrong[t, p] > 0
    ]


def _curve_plots(found: Thresholds) -> Plots:
    share = found.positives / (found.positives + found.negatives)
    roc, axes = new_figure("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(*_from_origin(found.false_positive_rate, found.recall), color=BLUE)
    pr, axes = new_figure("recall", "precision")
    axes.axhline(share, color=GREY, linestyle="--", linewidth=1)
    axes.plot(found.recall, found.precision, color=BLUE)
    axes.set_ylim(0, 1.02)
    gain, axes = new_figure("share of rows, highest scores first", "share of positive rows found")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(*_from_origin(found.called, found.recall), color=BLUE)
    threshold, axes = new_figure("threshold of the score", "")
    for name, colour in (("precision", BLUE), ("recall", ORANGE), ("f1", COLOURS[2])):
        axes.plot(found.score, getattr(found, name), color=colour, label=name)
    axes.axvline(0.0, color=GREY, linestyle="--", linewidth=1)
    axes.set_ylim(0, 1.02)
    legend(axes, columns=3)
    return {
        "roc": ("ROC curve", roc),
        "precision_recall": ("Precision and recall", pr),
        "gain": ("Cumulative gain", gain),
        "threshold": ("Precision, recall and F1 by threshold", threshold),
    }


def _from_origin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(([0.0], x)), np.concatenate(([0.0], y))


def _histogram(separation: Separation, names: tuple[str, str]) -> Figure:
    edges, positive, negative = separation.histograms(_BINS)
    figure, axes = new_figure("score", "part of the class")
    for name, colour, weights in ((names[1], BLUE, positive), (names[0], ORANGE, negative)):
        axes.stairs(weights / weights.sum(), edges, color=colour, fill=True, alpha=0.45, label=name)
    axes.axvline(0.0, color=GREY, linestyle="--", linewidth=1)
    legend(axes)
    return figure


def _reliability(bins: list[dict[str, float]], several: bool) -> Figure:
    """Observed frequency against predicted probability; the size of a point shows its number of rows."""
    said, true, weight = np.array([(each["mean"], each["share"], each["weight"]) for each in bins]).T
    words = ("probability of the most likely class", "part of rows of that class")
    figure, axes = new_figure(*words if several else ("probability that was predicted", "part of rows that are positive"))
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(said, true, color=BLUE)
    axes.scatter(said, true, 10.0 + 150.0 * weight / weight.sum(), color=BLUE)
    return figure


def _confusion(matrix: list[list[float]]) -> Figure:
    counts = np.asarray(matrix)
    totals = counts.sum(axis=1, keepdims=True)
    figure, axes = new_figure("number of the class that was said", "number of the true class")
    figure.set_size_inches(4.8, 4.2)
    image = axes.imshow(counts / np.where(totals > 0, totals, 1.0), cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    figure.colorbar(image, label="part of the true class")
    return figure


class _Residuals:
    """Predictions and y − prediction of a regression, with weights if rows have any."""

    row_bytes: ClassVar[tuple[int, int]] = (120, 160)

    def __init__(self, model: Model) -> None:
        self._model = model
        self._predicted: list[np.ndarray] = []
        self._residual: list[np.ndarray] = []
        self._weight: list[np.ndarray] = []

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores."""
        predicted = self._model.labels_of(scores)
        self._predicted.append(predicted.copy())
        self._residual.append(chunk.y - predicted)
        if chunk.weight is not None:
            self._weight.append(chunk.weight.copy())

    def plots(self) -> Plots:
        """Residuals over predictions, and their distribution."""
        prediction, residual = (np.concatenate(parts or [np.empty(0)]) for parts in (self._predicted, self._residual))
        weight = np.concatenate(self._weight) if self._weight else None
        if not len(residual):
            return {}
        over, axes = new_figure("prediction", "target − prediction")
        counts, *edges = np.histogram2d(prediction, residual, bins=_BINS, weights=weight)
        _shaded(axes, counts, edges)
        axes.axhline(0.0, color=GREY, linestyle="--", linewidth=1)
        spread, axes = new_figure("target − prediction", "rows")
        axes.hist(residual, bins=_BINS, weights=weight, color=BLUE)
        return {"residuals": ("Residuals over predictions", over), "residual_histogram": ("Residuals", spread)}


def _shaded(axes: Axes, counts: np.ndarray, edges: list[np.ndarray]) -> None:
    """Weights of rows in two dimensions, on a logarithmic scale."""
    shades = np.ma.masked_equal(counts.T, 0.0)
    axes.figure.colorbar(axes.pcolormesh(*edges, shades, cmap="Blues", norm="log"), ax=axes, label="rows")
