"""The plots of a report: the certificate over passes, curves of two classes, calibration, confusions, residuals, weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.models.model import Model
from streamcut.reports.drawing import BLUE, GREY, ORANGE, legend, new_figure, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Plots = dict[str, tuple[str, "Figure"]]  # (caption, figure) by name
_WORK = {"passes": "passes over the data", "epoch": "epochs", "rows_seen": "rows drawn", "seconds": "seconds"}
_UNPROVED = {  # what solvers without a bound record
    "primal_met": "objective over the rows met",
    "dual": "dual objective",
    "primal_estimate": "objective, estimated",
    "bound_estimate": "lower bound, estimated",
    "mean_hinge": "mean hinge loss",
}
_BINS = 40
_MOST_NUMBERS = 12  # classes whose confusions are written into the plot
_MOST_CLASSES, _MOST_WEIGHTS = 8, 20  # classes with weights shown, and weights of all of them


def certificate(history: Sequence[dict[str, Any]]) -> Plots:
    """How far the objective and the lower bound are from each other's best value, over the solver's own measure of work.

    Without a bound: what the solver records in its place.
    """
    if len(history) < 2:
        return {}
    from matplotlib.ticker import MaxNLocator

    work = next((name for name in _WORK if name in history[-1]), "seconds")
    label = _WORK[work]
    if work != "seconds" and "seconds" in history[-1]:
        label += f" ({history[-1]['seconds']:.3g} seconds in all)"
    at, primal, bound = _series(history, work, "primal", "lower_bound")
    if len(at) > 1 and primal[-1] > 0.0:
        figure, axes = new_figure(label, "distance / objective")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=work == "passes"))
        for name, colour, distance in (
            ("objective over best bound", BLUE, primal - bound.max()),
            ("bound under best objective", ORANGE, primal.min() - bound),
        ):
            shown = distance > 0.0
            axes.plot(at[shown], distance[shown] / primal[-1], color=colour, label=name)
        limit_at, primal, allowed = _series(history, work, "primal", "allowed_gap")
        if (allowed > 0.0).any():
            axes.plot(limit_at, allowed / primal, color=GREY, linestyle="--", label="gap allowed")
        legend(axes)
        return {"certificate": ("Certificate: objective and lower bound", figure)}
    recorded = [(name, _series(history, work, field)) for field, name in _UNPROVED.items()]
    recorded = [(name, curve) for name, curve in recorded if len(curve[0]) > 1]
    if not recorded:
        return {}
    figure, axes = new_figure(label, "")
    for colour, (name, (at, values)) in zip((BLUE, ORANGE, GREY), recorded, strict=False):
        axes.plot(at, values, color=colour, label=name)
    legend(axes)
    return {"certificate": ("Training, without a bound", figure)}


def _series(history: Sequence[dict[str, Any]], *fields: str) -> list[np.ndarray]:
    """Fields of the history, at entries that have all of them as finite numbers."""
    rows = [[line.get(name) for name in fields] for line in history]
    rows = [row for row in rows if all(isinstance(value, int | float) and np.isfinite(value) for value in row)]
    return list(np.array(rows, dtype=np.float64).reshape(-1, len(fields)).T)


def quality(collected: Any, measures: dict[str, Any], residuals: Residuals | None) -> Plots:
    """The plots of what `streamcut.evaluation.collect` found, whose `measures` these are."""
    plots: Plots = {} if residuals is None else residuals.plots()
    separation = getattr(collected, "separation", None)
    if separation is not None and separation.of_two:
        curves = separation.thresholds()
        figure, axes = new_figure("false positive rate", "true positive rate")
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
        axes.plot([0.0, *curves.false_positive_rate], [0.0, *curves.recall], color=BLUE)
        plots["roc"] = "ROC curve", figure
        figure, axes = new_figure("recall", "precision")
        axes.axhline(curves.positives / (curves.positives + curves.negatives), color=GREY, linestyle="--", linewidth=1)
        axes.plot(curves.recall, curves.precision, color=BLUE)
        axes.set_ylim(0, 1.02)
        plots["precision_recall"] = "Precision and recall", figure
    if bins := measures.get("reliability"):
        said, share, weight = np.array([(each["mean"], each["share"], each["weight"]) for each in bins]).T
        several = "confusion_matrix" in measures
        words = ("probability of the most likely class", "share of rows of that class")
        figure, axes = new_figure(*words if several else ("predicted probability", "share of positive rows"))
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
        axes.plot(said, share, color=BLUE)
        axes.scatter(said, share, 10.0 + 150.0 * weight / weight.sum(), color=BLUE)
        plots["calibration"] = "Calibration; points are as large as their rows are many", figure
    if "confusion_matrix" in measures:
        plots["confusion"] = "Confusion, as a share of each true class", _confusion(measures)
    return plots


def _confusion(measures: dict[str, Any]) -> Figure:
    counts, labels = np.asarray(measures["confusion_matrix"]), measures["labels"]
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    figure, axes = new_figure("predicted class", "true class")
    figure.set_size_inches(4.8, 4.2)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    figure.colorbar(image)
    if len(labels) <= _MOST_NUMBERS:
        names = [readable(f"{label:g}" if isinstance(label, float) else str(label), 10) for label in labels]
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        for (row, column), share in np.ndenumerate(shares):
            if share > 0.0:
                colour = "white" if share > 0.5 else "black"
                axes.text(column, row, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8)
    return figure


class Residuals:
    """Predictions and y − prediction of a regression, with weights if rows have any."""

    row_bytes: ClassVar[tuple[int, int]] = (120, 160)

    def __init__(self, model: Model) -> None:
        self._model = model
        self._rows: list[np.ndarray] = []

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores."""
        predicted = self._model.labels_of(scores)
        weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        self._rows.append(np.stack([predicted, chunk.y - predicted, weight]))

    def plots(self) -> Plots:
        """Residuals over predictions."""
        if not self._rows:
            return {}
        from matplotlib.colors import LinearSegmentedColormap

        prediction, residual, weight = np.concatenate(self._rows, axis=1)
        figure, axes = new_figure("prediction", "target − prediction")
        counts, *edges = np.histogram2d(prediction, residual, bins=_BINS, weights=weight)
        shades = np.ma.masked_less_equal(counts.T, 0.0)
        shade = LinearSegmentedColormap.from_list("few to many", [BLUE, ORANGE])
        if shades.count():
            figure.colorbar(axes.pcolormesh(*edges, shades, cmap=shade, norm="log", rasterized=True), label="rows")
        axes.axhline(0.0, color=GREY, linestyle="--", linewidth=1)
        return {"residuals": ("Residuals over predictions", figure)}


def greatest_weights(model: Model, names: list[str] | None) -> dict[str, list[tuple[str, float]]]:
    """The features with the weights greatest in magnitude, (name, weight), by class; of two classes for the positive one.

    Of several classes the first eight. Models of kernels have none. `names` are those of the features; None: their numbers.
    """
    if not model.of_features:
        return {}
    weights = model.weights  # type: ignore[attr-defined]
    labels: Any = model.labels or ("", "")
    words = [label and model.label_word(label) for label in (labels[1:] if weights.ndim == 1 else labels)]
    labels = [word if isinstance(word, str) else f"{word:g}" for word in words]
    columns = weights.reshape(len(weights), -1).T[:_MOST_CLASSES]
    count = _MOST_WEIGHTS if len(columns) == 1 else max(4, 2 * _MOST_WEIGHTS // len(columns))
    greatest = {}
    for label, w in zip(labels, columns, strict=False):
        order = np.argsort(-np.abs(w), kind="stable")[:count]
        features = [j for j in order.tolist() if w[j] != 0.0]
        greatest[label] = [(names[j] if names else f"{j + 1}", float(w[j])) for j in features]
    return greatest


def weights(greatest: dict[str, list[tuple[str, float]]], *, named: bool) -> Plots:
    """Bars of the greatest weights, a panel for each class."""
    greatest = {label: features for label, features in greatest.items() if features}
    if not greatest:
        return {}
    figure, axes = new_figure("", "")
    axes.remove()
    figure.set_size_inches(4.8, 0.6 + sum(0.6 + 0.2 * len(features) for features in greatest.values()))
    panels = figure.subplots(len(greatest), squeeze=False, height_ratios=[3 + len(features) for features in greatest.values()])
    for panel, (label, features) in zip(panels[:, 0], greatest.items(), strict=True):
        values = [weight for _, weight in features]
        panel.barh(range(len(values)), values, color=[BLUE if value > 0 else ORANGE for value in values])
        panel.set_yticks(range(len(values)), [readable(name, 24) for name, _ in features], fontsize=8)
        panel.invert_yaxis()
        panel.grid(axis="y", visible=False)
        panel.set_title(f"for {readable(label, 24)}" if label else "", fontsize=9, loc="left")
    return {"weights": ("The greatest weights" + ("" if named else "; features are numbered from 1"), figure)}
