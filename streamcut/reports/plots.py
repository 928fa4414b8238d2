"""Plots by Matplotlib: certificate, ROC, precision and recall, calibration, residuals, weights; and grids."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from statistics import pstdev
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import options_text, visible
from streamcut.io.outputs import output
from streamcut.measures.classes import BinaryMeasures
from streamcut.measures.ranking import RocAreaMeasures
from streamcut.measures.regression import RegressionMeasures
from streamcut.models.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streamcut.evaluation import Measures
    from streamcut.grids.search import Cell

Plots = dict[str, tuple[str, "Figure"]]  # (caption, figure) by name
BLUE, ORANGE, GREY = "#3d8bd4", "#d9822b", "#8a8f98"
FORMATS = (".svg", ".png")
_WORK = {"passes": "passes over the data", "epoch": "epochs", "rows_seen": "rows drawn", "seconds": "seconds"}
_STYLE: Any = {  # matplotlib has a literal type for every key
    "figure.figsize": (4.8, 3.0),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
}


def needs_matplotlib() -> None:
    """Raise UsageError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError("plots need matplotlib: pip install 'streamcut[plots]'") from None


def styled() -> AbstractContextManager:
    """A context in which figures are made in our style."""
    needs_matplotlib()
    import matplotlib as mpl

    return mpl.rc_context(_STYLE)


def _new(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """A figure without display."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return figure, axes


def _legend(axes: Axes) -> None:
    """The names of the curves, above them."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.0)


def _readable(name: str, most: int = 24) -> str:
    """A name as a plot shows it: short, without control characters; a dollar sign starts no formula."""
    name, half = visible(name), most // 2
    return (name if len(name) <= most else f"{name[: half - 1]}…{name[-half:]}").replace("$", r"\$")


def rendered(figure: Figure, form: str, name: str) -> bytes:
    """The file of a figure, "svg" or "png", black on white: the same figure and name give the same bytes."""
    import matplotlib as mpl

    target = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else None
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(target, format=form, facecolor="white", dpi=150, metadata=metadata)
    return target.getvalue()


def save(figure: Figure, path: str | os.PathLike) -> None:
    """Write the figure as the ending of `path` says. Raises UsageError for an unsupported ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise UsageError(f"{path}: plots are written as {' or '.join(FORMATS)}")
    content = rendered(figure, ending[1:], os.path.basename(path))
    with output(path, prefix="plot", size=len(content)) as file:
        file.write(content)


def certificate(history: Sequence[Mapping[str, Any]]) -> Plots:
    """How far the objective and the lower bound are from each other's best value, over the solver's own measure of work; no
    plot without a bound."""
    work = next((name for name in _WORK if history and name in history[-1]), "seconds")
    fields = (work, "primal", "lower_bound")
    rows = [[line.get(name) for name in fields] for line in history]
    numbers = [row for row in rows if all(isinstance(value, int | float) and np.isfinite(value) for value in row)]
    at, primal, bound = np.array(numbers, dtype=np.float64).reshape(-1, 3).T
    if len(at) < 2 or not primal[-1] > 0.0:
        return {}
    from matplotlib.ticker import MaxNLocator

    label = _WORK[work] + (f" ({history[-1]['seconds']:.3g} seconds in all)" if "seconds" in history[-1] else "")
    figure, axes = _new(label, "distance / objective")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=work == "passes"))
    above, below = primal - bound.max(), primal.min() - bound
    for name, colour, distance in (("objective over best bound", BLUE, above), ("bound under best objective", ORANGE, below)):
        shown = distance > 0.0
        axes.plot(at[shown], distance[shown] / primal[-1], color=colour, label=name)
    _legend(axes)
    return {"certificate": ("Certificate: objective and lower bound", figure)}


def quality(collected: Measures, measures: Mapping[str, Any]) -> Plots:
    """The plots of what `streamcut.evaluation.collect` returns, whose `measures` these are."""
    plots: Plots = collected.plots() if isinstance(collected, Residuals) else {}
    separation = collected.separation if isinstance(collected, BinaryMeasures | RocAreaMeasures) else None
    if separation is not None and separation.of_two:
        false_positive_rate, recall, precision = separation.curves()
        figure, axes = _new("false positive rate", "true positive rate")
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
        axes.plot([0.0, *false_positive_rate], [0.0, *recall], color=BLUE)
        plots["roc"] = "ROC curve", figure
        figure, axes = _new("recall", "precision")
        axes.axhline(separation.share, color=GREY, linestyle="--", linewidth=1)
        axes.plot(recall, precision, color=BLUE)
        axes.set_ylim(0, 1.02)
        plots["precision_recall"] = "Precision and recall", figure
    if bins := measures.get("reliability"):
        said, share, weight = np.array([(bucket["mean"], bucket["share"], bucket["weight"]) for bucket in bins]).T
        words = ("probability of the most likely class", "share of rows of that class")
        figure, axes = _new(*words if "classes" in measures else ("predicted probability", "share of positive rows"))
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
        axes.plot(said, share, color=BLUE)
        axes.scatter(said, share, 10.0 + 150.0 * weight / weight.sum(), color=BLUE)
        plots["calibration"] = "Calibration; points are as large as their rows are many", figure
    return plots


class Residuals(RegressionMeasures):
    """Measures of a regression that keep predictions and y − prediction, with weights if rows have any."""

    row_bytes: ClassVar[tuple[int, int]] = (120, 160)

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._kept: list[np.ndarray] = []

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores."""
        super().add(chunk, scores)
        predicted = self._model.labels_of(scores)
        weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        self._kept.append(np.stack([predicted, chunk.y - predicted, weight]))

    def plots(self) -> Plots:
        """Residuals over predictions."""
        prediction, residual, weight = np.concatenate(self._kept, axis=1)
        figure, axes = _new("prediction", "target − prediction")
        *_, shades = axes.hist2d(prediction, residual, bins=40, weights=weight, cmin=np.nextafter(0.0, 1.0), rasterized=True)
        figure.colorbar(shades, label="rows")
        axes.axhline(0.0, color=GREY, linestyle="--", linewidth=1)
        return {"residuals": ("Residuals over predictions", figure)}


def weights(greatest: dict[str, list[tuple[str, float]]]) -> Plots:
    """Bars of the greatest weights by class, (name of the feature, weight), a panel for each class."""
    greatest = {label: features for label, features in greatest.items() if features}
    if not greatest:
        return {}
    figure, axes = _new("", "")
    axes.remove()
    figure.set_size_inches(4.8, 0.6 + sum(0.6 + 0.2 * len(features) for features in greatest.values()))
    panels = figure.subplots(len(greatest), squeeze=False, height_ratios=[3 + len(features) for features in greatest.values()])
    for panel, (label, features) in zip(panels[:, 0], greatest.items(), strict=True):
        values = [weight for _, weight in features]
        panel.barh(range(len(values)), values, color=[BLUE if value > 0 else ORANGE for value in values])
        panel.set_yticks(range(len(values)), [_readable(name) for name, _ in features], fontsize=8)
        panel.invert_yaxis()
        panel.grid(axis="y", visible=False)
        panel.set_title(f"for {_readable(label)}" if label else "", fontsize=9, loc="left")
    return {"weights": ("The greatest weights; features without names are numbered from 0", figure)}


def grid_plot(cells: Sequence[Cell]) -> Figure:
    """The measure over C, one line per combination of the other options; bars are the standard deviation over folds."""
    with styled():
        figure, axes = _new("C", cells[0].measure.replace("_", " "))
        lines: dict[str, list[Cell]] = {}
        for cell in cells:
            others = options_text({name: value for name, value in cell.options.items() if name != "C"})
            lines.setdefault(others, []).append(cell)
        for name, line in lines.items():
            line = sorted(line, key=lambda cell: cell.options["C"])
            spread = [pstdev(cell.values) for cell in line]
            Cs, means = [cell.options["C"] for cell in line], [cell.mean for cell in line]
            axes.errorbar(Cs, means, spread, marker="o", label=_readable(name), capsize=3)
        axes.set_xscale("log")
        if len(lines) > 1:
            _legend(axes)
        return figure
