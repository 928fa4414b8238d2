"""One HTML page about several models side by side: their differences, their quality on the same rows, their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamcut.errors import UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.units import format_bytes
from streamcut.models.files import plain
from streamcut.models.model import Model
from streamcut.reports import parts
from streamcut.reports.convergence import gaps_plot
from streamcut.reports.drawing import needs_matplotlib
from streamcut.reports.page import DRAWING, Page, headline
from streamcut.reports.quality import Quality, overlaid, quality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LESS_IS_BETTER = ("loss", "error", "deviance", "brier", "calibration", "swapped")
_COUNTS = ("rows", "weight", "queries", "groups", "true_positives", "false_positives", "true_negatives", "false_negatives")


class Comparison(Page):
    """Several models of one task.

    models  by display name
    data    the rows to measure all on, as `Report` takes them; read once per model
    memory  ceiling on resident memory, "4GB", "50%" or "auto"

    Raises MemoryBudgetError if that is too little, UsageError for fewer than two models, for models of several tasks, and
    without matplotlib.
    """

    def __init__(self, models: Mapping[str, Model], *, data: Any = None, memory: str = "auto") -> None:
        needs_matplotlib()
        ceiling = Ceiling(memory)
        ceiling.beside("drawing, writing", DRAWING)
        if data is None:
            ceiling.expect([])
        tasks = {model.task for model in models.values()}
        if len(models) < 2:
            raise UsageError("a comparison needs two models or more")
        if len(tasks) > 1:
            raise UsageError(f"these models are of the tasks {', '.join(sorted(tasks))}; compare models of one task")
        self.models = dict(models)
        self.title = f"{len(models)} {tasks.pop()} models"
        self.quality = {name: Quality({}) if data is None else quality(model, data, ceiling) for name, model in models.items()}
        self.measured = data is not None
        curves = {name: each.curves for name, each in self.quality.items() if each.curves is not None}
        self.quality_plots = overlaid(curves) if curves else {}
        self.training = {}
        for field, caption in (("passes", "Gap over passes"), ("seconds", "Gap over seconds")):
            if (figure := gaps_plot({name: model.history for name, model in models.items()}, field)) is not None:
                self.training[f"gap_by_{field}"] = caption, figure

    def numbers(self) -> dict[str, Any]:
        """Everything in JSON types; also embedded in the page."""
        return plain(
            {
                name: {
                    "measures": self.quality[name].measures,
                    "result": model.result(),
                    "parameters": model.parameters,
                    "resources": model.resources,
                }
                for name, model in self.models.items()
            }
        )

    def figures(self) -> dict[str, Figure]:
        return {name: figure for name, (_, figure) in {**self.quality_plots, **self.training}.items()}

    def html(self) -> str:
        sections = {
            "How good they are": self._how_good(),
            "What differs": self._what_differs(),
            "Certificates": self._certificates() + parts.figures(self.training),
            "What they cost": self._costs(),
        }
        return parts.page(self.title, ", ".join(self.models), "", sections, self.numbers())

    def _how_good(self) -> str:
        if not self.measured:
            return parts.quiet("Not measured: give --data with rows that training did not see.")
        every = {name: value for each in self.quality.values() for name, value in each.measures.items()}
        names = [name for name, value in every.items() if not isinstance(value, list | dict) and name not in _COUNTS]
        rows = {name: [each.measures.get(name) for each in self.quality.values()] for name in names}
        return _side_by_side(list(self.models), rows, marked=True) + parts.figures(self.quality_plots)

    def _what_differs(self) -> str:
        every = [{"solver": model.solver, **model.parameters, "features": model.n_features} for model in self.models.values()]
        names = list(dict.fromkeys(name for each in every for name in each))
        values = {name: [each.get(name) for each in every] for name in names}
        rows = {name: found for name, found in values.items() if any(value != found[0] for value in found[1:])}
        return _side_by_side(list(self.models), rows) if rows else parts.quiet("No parameter differs.")

    def _certificates(self) -> str:
        results = [model.result() for model in self.models.values()]
        names = [name for name, value in results[0].items() if not isinstance(value, list | dict)]
        return _side_by_side(list(self.models), {name: [each.get(name) for each in results] for name in names})

    def _costs(self) -> str:
        lines = [headline(model, {}) for model in self.models.values()]
        names = list(dict.fromkeys(name for line in lines for name in line if name != "above the optimum at most"))
        rows = {name: [line.get(name) for line in lines] for name in names}
        rows["allowed memory"] = [
            format_bytes(model.resources["budget"]) if model.resources else None for model in self.models.values()
        ]
        return _side_by_side(list(self.models), rows)


def _side_by_side(models: Sequence[str], rows: Mapping[str, Sequence[Any]], marked: bool = False) -> str:
    """A line for each of `rows`, a column for each model; the best value is highlighted if `marked`."""
    head = "<th></th>" + "".join(f'<th class="number">{parts.shown(name)}</th>' for name in models)
    lines = ""
    for name, values in rows.items():
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        best = None
        if marked and len(set(numbers)) > 1:
            best = min(numbers) if any(word in name for word in _LESS_IS_BETTER) else max(numbers)
        cells = "".join(parts.cell(value, "best" if best is not None and value == best else "") for value in values)
        lines += f"<tr><td>{parts.shown(name.replace('_', ' '))}</td>{cells}</tr>"
    return f'<div class="wide"><table><tr>{head}</tr>{lines}</table></div>'
