"""Figures: their style, as SVG inside a light or dark page, and as files."""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, Any

from streamcut.errors import UsageError
from streamcut.foundation.shown import visible
from streamcut.io.places.outputs import output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#3d8bd4", "#d9822b", "#8a8f98"  # readable on white and on black
FORMATS = (".svg", ".png")
_LONGEST = 28  # characters of a name in a legend
_INK = "#010203"  # stands for the page's own text colour
_STYLE: Any = {  # matplotlib has a literal type for every key
    "figure.figsize": (4.8, 3.0),
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), _INK),
}


def needs_matplotlib() -> None:
    """Raise UsageError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError("plots need matplotlib: pip install 'streamcut[plots]'") from None


def styled() -> Any:
    """A context in which figures are made in our style."""
    needs_matplotlib()
    import matplotlib as mpl

    return mpl.rc_context(_STYLE)


def new_figure(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """A figure without display."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return figure, axes


def legend(axes: Axes, columns: int = 2) -> None:
    """The names of the curves, above them."""
    curves, names = axes.get_legend_handles_labels()
    names = [readable(name) for name in names]
    if max(map(len, names), default=0) > _LONGEST // 2:
        columns = 1
    axes.legend(curves, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.0)


def readable(name: str, most: int = _LONGEST) -> str:
    """A name as a plot shows it: short, without control characters; a dollar sign starts no formula."""
    name, half = visible(name), most // 2
    return (name if len(name) <= most else f"{name[: half - 1]}…{name[-half:]}").replace("$", r"\$")


def inline_svg(figure: Figure, name: str) -> str:
    """The figure for a page: no background, text and axes in the page's colour. `name` keeps ids of two figures apart."""
    svg = _rendered(figure, "svg", name, transparent=True).decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg)
    return svg.replace(_INK, "currentColor")


def save(figure: Figure, path: str | os.PathLike) -> None:
    """Write the figure, black on white, as the ending of `path` says. Raises UsageError for an unsupported ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise UsageError(f"{path}: plots are written as {' or '.join(FORMATS)}")
    content = _rendered(figure, ending[1:], os.path.basename(path), facecolor="white", dpi=150)
    with output(path, prefix="plot", size=len(content)) as file:
        file.write(content)


def _rendered(figure: Figure, form: str, name: str, **options: Any) -> bytes:
    import matplotlib as mpl

    target = io.BytesIO()
    dates: dict[str, Any] = {"metadata": {"Date": None}} if form == "svg" else {}  # the same figure gives the same bytes
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(target, format=form, **dates, **options)
    return target.getvalue()
