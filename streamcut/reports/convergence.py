"""Plots of training: the gap and its two sides on a logarithmic axis, the solvers' own measures, bytes per second."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.reports.drawing import BLUE, COLOURS, GREY, ORANGE, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

History = Sequence[dict[str, Any]]

_X = (("passes", "passes over the data"), ("epoch", "epochs"), ("rows_seen", "rows drawn"), ("seconds", "seconds"))
_Y: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {  # figures: caption, ylabel, curves of (field, name)
    "estimates": ("Objective, estimated", "objective", (("primal_estimate", "objective"), ("bound_estimate", "lower bound"))),
    "averages": ("Objective", "objective", (("primal_met", "objective over rows met"), ("dual", "dual objective"))),
    "accuracy": ("Accuracy", "part of rows", (("accuracy_met", "right before the step"), ("validation", "right in validation"),
                                              ("error", "wrong in validation"))),
    "loss": ("Loss", "mean hinge loss", (("mean_hinge", "mean hinge loss"),)),
    "budget": ("What the budget costs", "part", (("maintained", "steps that were followed by maintenance"),
                                                 ("progress_lost", "of a step's progress"))),
    "support": ("Support vectors", "support vectors", (("support_vectors", "support vectors"), ("support", "support vectors"))),
}  # fmt: skip

Plots = dict[str, tuple[str, "Figure"]]


def convergence_plots(history: History) -> Plots:
    """(caption, figure) by name for what the history holds, over the solver's own measure of work.

    gap     (objective − bound) / objective, with the tolerance
    sides   how far the objective is above the last bound and the bound below the last objective, relative to the latter: shows
            which of the two is the bottleneck
    """
    found: Plots = {}
    if len(history) < 2:
        return found
    x = _work(history)
    steps, gap = _series(history, x[0], "gap")
    _, primal = _series(history, x[0], "primal")
    if len(gap) > 1 and len(primal) == len(gap) and (gap > 0).any() and primal[-1] > 0:
        figure, axes = _axes(x, history, "gap / objective")
        axes.semilogy(*_positive(steps, gap / np.abs(primal)), color=BLUE, label="gap")
        at, allowed = _series(history, x[0], "allowed_gap")
        if len(allowed) == len(primal) and (allowed > 0).any():
            axes.semilogy(*_positive(at, allowed / np.abs(primal)), color=GREY, linestyle="--", label="tolerance")
        legend(axes)
        found["gap"] = "Gap between objective and lower bound", figure
        _, bound = _series(history, x[0], "lower_bound")
        if len(bound) == len(primal):
            figure, axes = _axes(x, history, "distance / objective")
            for colour, name, y in (
                (BLUE, "objective", primal - bound.max()),
                (ORANGE, "lower bound", primal.min() - bound),
            ):
                axes.semilogy(*_positive(steps, y / primal[-1]), color=colour, label=name)
            legend(axes)
            found["sides"] = "Distance of objective and bound from the other's last value", figure
    for name, (caption, ylabel, curves) in _Y.items():
        drawn = [(text, *_series(history, x[0], field)) for field, text in curves]
        drawn = [each for each in drawn if len(each[1]) > 1]
        if drawn:
            figure, axes = _axes(x, history, ylabel)
            for colour, (text, at, y) in zip(COLOURS, drawn, strict=False):
                axes.plot(at, y, color=colour, label=text)
            if len(drawn) > 1:
                legend(axes)
                axes.set_ylim(_sensible(*(y for _, _, y in drawn)))
            found[name] = caption, figure
    return found


def traffic_plot(history: History) -> Figure | None:
    """GB/s from storage and through the kernels in each step of the history; None if not recorded."""
    if len(history) < 2 or "bytes_computed" not in history[-1]:
        return None
    x = _work(history)
    whole = [line for line in history if {x[0], "seconds", "bytes_computed", "bytes_read"} <= line.keys()]
    steps = [(a, b) for a, b in pairwise(whole) if b["seconds"] > a["seconds"]]
    if len(steps) < 2:  # one point makes no line
        return None
    figure, axes = _axes(x, history, "GB/s")
    for field, text, colour in (("bytes_computed", "rows gone through", BLUE), ("bytes_read", "read from storage", ORANGE)):
        rates = [(b[field] - a[field]) / (b["seconds"] - a["seconds"]) / 1e9 for a, b in steps]
        axes.plot([b[x[0]] for _, b in steps], rates, color=colour, label=text)
    axes.set_ylim(bottom=0)
    legend(axes)
    return figure


def _work(history: History) -> tuple[str, str]:
    """The solver's own measure of work: (field, label)."""
    return next((each for each in _X if each[0] in history[-1]), _X[-1])


def _axes(x: tuple[str, str], history: History, ylabel: str) -> tuple[Figure, Axes]:
    """A figure over (field of the history, label), passes in whole numbers; the label says how many seconds they took."""
    from matplotlib.ticker import MaxNLocator

    field, label = x
    if field != "seconds" and "seconds" in history[-1]:
        label += f" ({history[-1]['seconds']:.3g} seconds in all)"
    figure, axes = new_figure(label, ylabel)
    if field == "passes":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _series(history: History, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Two fields of the history, at entries that have both."""
    both = [(line[x], line[y]) for line in history if _is_number(line.get(x)) and _is_number(line.get(y))]
    found = np.array(both, dtype=np.float64).reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1)]
    return found[:, 0], found[:, 1]


def _positive(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points that a logarithmic axis can show."""
    return x[y > 0], y[y > 0]


def _sensible(*curves: np.ndarray) -> tuple[float, float]:
    """Limits that show the ends of all curves: early bounds may be arbitrarily low."""
    top, end = max(float(curve.max()) for curve in curves), min(float(curve[-1]) for curve in curves)
    bottom = max(min(float(curve.min()) for curve in curves), end - 0.5 * (top - end))
    space = 0.05 * (top - bottom) or 1.0
    return bottom - space, top + space
