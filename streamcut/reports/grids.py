"""The plot of a grid search."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev
from typing import TYPE_CHECKING

from streamcut.foundation.shown import options_text
from streamcut.grids.search import Cell
from streamcut.reports.drawing import legend, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def grid_plot(cells: Sequence[Cell]) -> Figure:
    """The measure over C, one line per combination of the other options; bars are the standard deviation over folds."""
    with styled():
        figure, axes = new_figure("C", cells[0].measure.replace("_", " "))
        lines: dict[str, list[Cell]] = {}
        for cell in cells:
            others = options_text({name: value for name, value in cell.options.items() if name != "C"})
            lines.setdefault(others, []).append(cell)
        for name, line in lines.items():
            line = sorted(line, key=lambda cell: cell.options["C"])
            spread = [pstdev(cell.values) for cell in line]
            Cs, means = [cell.options["C"] for cell in line], [cell.mean for cell in line]
            axes.errorbar(Cs, means, spread, marker="o", label=name, capsize=3)
        axes.set_xscale("log")
        if len(lines) > 1:
            legend(axes)
        return figure
