"""The plots of a model: how training went, and how it separates rows of a validation store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from streamcut.models.model import Model
from streamcut.prediction import scored_chunks
from streamcut.reports.drawing import BLUE, GREY, ORANGE, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_X = (("passes", "passes over the data"), ("epoch", "epochs"), ("rows_seen", "rows drawn"), ("seconds", "seconds"))
_Y: dict[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {  # figures: ylabel, curves of (field of the history, name, colour)
    "objective": ("objective", (("primal", "objective", BLUE), ("lower_bound", "lower bound", ORANGE),
                                ("primal_estimate", "objective, estimated", BLUE),
                                ("bound_estimate", "lower bound, estimated", ORANGE))),
    "averages": ("objective", (("primal_met", "objective over rows met", BLUE), ("dual", "dual objective", ORANGE))),
    "accuracy": ("part of rows", (("accuracy_met", "right before the step", BLUE),
                                  ("validation", "right in validation", ORANGE), ("error", "wrong in validation", ORANGE))),
    "loss": ("mean hinge loss", (("mean_hinge", "mean hinge loss", BLUE),)),
    "support": ("support vectors", (("support_vectors", "support vectors", BLUE), ("support", "support vectors", BLUE))),
}  # fmt: skip
_BINS = 15  # of probabilities
_POINTS = 2000  # of a curve that is drawn


def convergence_plots(history: Sequence[dict[str, Any]]) -> dict[str, Figure]:
    """What the history has, by name: every group of curves against the solver's own measure of work and against seconds.

    The relative gap has a figure of its own, with a logarithmic axis.
    """
    found: dict[str, Figure] = {}
    if len(history) < 2:
        return found
    own = next((each for each in _X if each[0] in history[-1]), _X[-1])
    for field, label in dict.fromkeys((own, _X[-1])):
        for name, (ylabel, curves) in _Y.items():
            drawn = [(curve, *_series(history, field, curve[0])) for curve in curves]
            drawn = [each for each in drawn if len(each[1]) > 1]
            if not drawn:
                continue
            figure, axes = _work_axes((field, label), ylabel)
            for (_, text, colour), x, y in drawn:
                axes.plot(x, y, color=colour, label=text)
            if len(drawn) > 1:
                legend(axes)
            if name == "objective":
                axes.set_ylim(_sensible(*(y for _, _, y in drawn)))
            found[f"{name}_by_{field}"] = figure
        x, gap = _series(history, field, "gap")
        if len(x) > 1 and (gap > 0).any():
            figure, axes = _work_axes((field, label), "gap (objective − lower bound)")
            axes.semilogy(x[gap > 0], gap[gap > 0], color=BLUE, label="gap")
            x, allowed = _series(history, field, "allowed_gap")
            if (allowed > 0).any():
                axes.semilogy(x[allowed > 0], allowed[allowed > 0], color=GREY, linestyle="--", label="allowed")
            legend(axes)
            found[f"gap_by_{field}"] = figure
    return found


def _work_axes(x: tuple[str, str], ylabel: str) -> tuple[Figure, Axes]:
    """A figure over (field of the history, label); passes are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure(x[1], ylabel)
    if x[0] == "passes":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def traffic_plot(history: Sequence[dict[str, Any]]) -> Figure | None:
    """GB/s from storage and through the kernels in each step of the history, None when it was not recorded."""
    if len(history) < 2 or "bytes_computed" not in history[-1]:
        return None
    x = next((each for each in _X if each[0] in history[-1]), _X[-1])
    whole = [line for line in history if {x[0], "seconds", "bytes_computed", "bytes_read"} <= line.keys()]
    figure, axes = _work_axes(x, "GB/s")
    steps = [(a, b) for a, b in pairwise(whole) if b["seconds"] > a["seconds"]]
    for field, text, colour in (("bytes_computed", "rows gone through", BLUE), ("bytes_read", "read from storage", ORANGE)):
        rates = [(b[field] - a[field]) / (b["seconds"] - a["seconds"]) / 1e9 for a, b in steps]
        axes.plot([b[x[0]] for _, b in steps], rates, color=colour, label=text)
    axes.set_ylim(bottom=0)
    legend(axes)
    return figure


def separation_plots(model: Model, data: Any) -> dict[str, Figure]:
    """ROC and precision-recall curves of a model of two classes on an opened data set."""
    truths, values, weights = [], [], []
    for chunk, scores in scored_chunks(model, data):
        truths.append(model.is_positive(chunk.y, chunk.first_row))  # type: ignore[attr-defined]
        values.append(scores.copy())
        weights.append(np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight.copy())
    truth, score, weight = (np.concatenate(parts) for parts in (truths, values, weights))
    if truth.all() or not truth.any():
        return {}
    share = float(weight[truth].sum() / weight.sum())
    wrong, right, _ = roc_curve(truth, score, sample_weight=weight)
    roc, axes = new_figure("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(*_thinned(wrong, right), color=BLUE)
    precision, recall, _ = precision_recall_curve(truth, score, sample_weight=weight)
    pr, axes = new_figure("recall", "precision")
    axes.axhline(share, color=GREY, linestyle="--", linewidth=1)
    axes.plot(*_thinned(recall, precision), color=BLUE)
    axes.set_ylim(0, 1.02)
    return {"roc": roc, "precision_recall": pr}


def reliability_plot(model: Model, data: Any) -> Figure:
    """Of a model with probabilities for two classes: the part of positive rows among those of about equal probability."""
    edges, sums = np.linspace(0.0, 1.0, _BINS + 1), np.zeros((3, _BINS))
    for chunk, scores in scored_chunks(model, data):
        p, u = model.probabilities_of(scores), np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        truth = model.is_positive(chunk.y, chunk.first_row)  # type: ignore[attr-defined]
        which = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, _BINS - 1)
        for total, of_rows in zip(sums, (u, u * p, u * truth), strict=True):
            total += np.bincount(which, of_rows, _BINS)
    weight, said, true = sums[:, sums[0] > 0.0]
    figure, axes = new_figure("probability that was predicted", "part of rows that are positive")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(said / weight, true / weight, color=BLUE)
    axes.scatter(said / weight, true / weight, 10.0 + 150.0 * weight / weight.sum(), color=BLUE)  # size: how many rows
    return figure


def reliability_of_classes(measures: dict[str, Any]) -> Figure:
    """Of a model with probabilities for several classes, by its measures: how often the most likely class came true."""
    said, true, weight = np.array([(each["mean"], each["share"], each["weight"]) for each in measures["reliability"]]).T
    figure, axes = new_figure("probability of the most likely class", "part of rows of that class")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    axes.plot(said, true, color=BLUE)
    axes.scatter(said, true, 10.0 + 150.0 * weight / weight.sum(), color=BLUE)  # size: how many rows
    return figure


def residual_plots(model: Model, data: Any) -> dict[str, Figure]:
    """Residuals y − prediction of a regression on an opened data set: over predictions, and how they are spread."""
    predicted, residuals, weights = [], [], []
    for chunk, scores in scored_chunks(model, data):
        predicted.append(model.labels_of(scores).copy())
        residuals.append(chunk.y - predicted[-1])
        weights.append(np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight.copy())
    prediction, residual, weight = (np.concatenate(parts) for parts in (predicted, residuals, weights))
    over, axes = new_figure("prediction", "target − prediction")
    counts, *edges = np.histogram2d(prediction, residual, bins=60, weights=weight)
    shaded = np.ma.masked_equal(counts.T, 0.0)
    over.colorbar(axes.pcolormesh(*edges, shaded, cmap="Blues", norm="log"), label="rows")
    axes.axhline(0.0, color=GREY, linestyle="--", linewidth=1)
    spread, axes = new_figure("target − prediction", "rows")
    axes.hist(residual, bins=60, weights=weight, color=BLUE)
    return {"residuals": over, "residual_histogram": spread}


def confusion_plot(measures: dict[str, Any]) -> Figure:
    """Of several classes: the part of the rows of each true label (down) that got each label (across)."""
    matrix = np.asarray(measures["confusion_matrix"])
    totals = matrix.sum(axis=1, keepdims=True)
    figure, axes = new_figure("predicted", "true")
    figure.set_size_inches(6.0, 5.2)
    image = axes.imshow(matrix / np.where(totals > 0, totals, 1.0), cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    names = [label if isinstance(label, str) else f"{label:g}" for label in measures["labels"]]
    if len(names) <= 30:
        axes.set_xticks(range(len(names)), names, rotation=0 if len(names) <= 12 else 90)
        axes.set_yticks(range(len(names)), names)
    figure.colorbar(image, label="part of the row")
    return figure


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _series(history: Sequence[dict[str, Any]], x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Two fields of the history, where both have a value."""
    both = [(line[x], line[y]) for line in history if _is_number(line.get(x)) and _is_number(line.get(y))]
    found = np.array(both, dtype=np.float64).reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1)]
    return found[:, 0], found[:, 1]


def _sensible(*curves: np.ndarray) -> tuple[float, float]:
    """Limits that show how all curves end: first bounds may lie anywhere below."""
    top, end = max(float(curve.max()) for curve in curves), min(float(curve[-1]) for curve in curves)
    bottom = max(min(float(curve.min()) for curve in curves), end - 0.5 * (top - end))
    space = 0.05 * (top - bottom) or 1.0
    return bottom - space, top + space


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most _POINTS points, the ends among them."""
    if len(x) <= _POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).astype(np.int64))
    return x[kept], y[kept]
