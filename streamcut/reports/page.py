"""One HTML page about a model: text, numbers and plots in one self-contained file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.units import format_bytes
from streamcut.io.places.outputs import output
from streamcut.models.files import as_model, plain
from streamcut.models.model import Model
from streamcut.reports import facts, parts
from streamcut.reports.convergence import convergence_plots, traffic_plot
from streamcut.reports.drawing import FORMATS, needs_matplotlib, save
from streamcut.reports.quality import Quality, class_names, confusion_of, most_confused, quality

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DRAWING = 48 << 20  # bytes of matplotlib while drawing, and of the page
ORDERING = 24  # bytes per weight while the largest are found
_HEADLINES = 4  # measures in the headline


class Report:
    """All that is known about a model: its quality first, then its certificate, weights and training.

    data        rows to measure it on, as `evaluate` takes them: a store, a table, text; read once
    vocabulary  file with the name of each feature on a line of its own
    path        the model file, for the command that retrains it
    memory      ceiling on resident memory, "4GB", "50%" or "auto"

    Raises MemoryBudgetError if that is too little, UsageError without matplotlib, BadInputError for labels and features unknown
    to the model.
    """

    def __init__(
        self,
        model: Model,
        *,
        data: Any = None,
        vocabulary: str | os.PathLike | None = None,
        path: str | os.PathLike | None = None,
        memory: str = "auto",
    ) -> None:
        needs_matplotlib()
        ceiling = Ceiling(memory)
        ceiling.beside("drawing, writing", DRAWING + ORDERING * model.n_features)
        if data is None:
            ceiling.expect([])
        self.model, self.title = model, f"{model.task} model by {model.solver}"
        self.command = facts.command(model, path)
        self.traffic = facts.traffic(model)
        names = facts.names(model) if vocabulary is None else facts.vocabulary(vocabulary, model.n_features)
        self.quality = Quality({}) if data is None else quality(model, data, ceiling)
        self.features = facts.top_features(model, names)
        self.named = names is not None
        self.training = convergence_plots(model.history)
        traffic = traffic_plot(model.history)
        self.throughput = {} if traffic is None else {"traffic": ("Throughput", traffic)}
        self.measured_on = f"{data}" if isinstance(data, str | os.PathLike) else "" if data is None else "data in memory"

    def numbers(self) -> dict[str, Any]:
        """Everything in JSON types; also embedded in the page."""
        model = self.model
        found = {
            "title": self.title,
            "result": model.result(),
            "words": model.in_words(),
            "certified": facts.begun_in_words(model) or None,
            "resources": model.resources,
            "traffic": self.traffic,
            "top_features": self.features,
            "measures": self.quality.measures,
            "command": self.command,
            "fingerprint": model.fingerprint,
        }
        return plain(found)

    def figures(self) -> dict[str, Figure]:
        return {name: figure for name, (_, figure) in {**self.quality.plots, **self.training, **self.throughput}.items()}

    def write(self, path: str | os.PathLike, *, replace: bool = True) -> None:
        """Write the page. UsageError when the file exists, unless `replace`."""
        with output(path, prefix="report", replace=replace) as file:
            file.write(self.html().encode())

    def write_plots(self, folder: str | os.PathLike) -> list[Path]:
        """Write every plot as SVG and PNG to `folder`, created if needed; returns the files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        written = []
        for name, figure in self.figures().items():
            for ending in FORMATS:
                written.append(Path(folder) / f"{name}{ending}")
                save(figure, written[-1])
        return written

    def html(self) -> str:
        model = self.model
        line = " · ".join(filter(None, (facts.loss_in_words(model), f"{model.n_features:,} features")))
        sections = {
            "How good it is": self._how_good(),
            "Certificate": self._certificate(),
            "Weights": self._weights(),
            "The run": self._run(),
        }
        title = self.title[0].upper() + self.title[1:]
        return parts.page(title, line, parts.cards(headline(model, self.quality.measures)), sections, self.numbers())

    def _how_good(self) -> str:
        measures = self.quality.measures
        if not measures:
            return parts.quiet("Not measured: give --data with rows that training did not see.")
        found = confusion_of(measures, class_names(self.model))
        mistaken = most_confused(measures) if "confusion_matrix" in measures else []
        single = {name: value for name, value in measures.items() if not isinstance(value, list | dict)}
        return (
            parts.quiet(f"On {self.measured_on}.")
            + ("" if found is None else parts.confusion(*found))
            + parts.figures(self.quality.plots)
            + parts.table(single)
            + parts.records(measures.get("classes", []))
            + ("<h3 class=next>Most often mistaken</h3>" + parts.records(mistaken) if mistaken else "")
        )

    def _certificate(self) -> str:
        result = {name: value for name, value in self.model.result().items() if not isinstance(value, dict) and value != ""}
        classes = self.model.result().get("classes", {})
        some = ("primal", "lower_bound", "gap", "stop_reason")
        rows = [{"class": name, **{field: each[field] for field in some}} for name, each in classes.items()]
        words = f'<p class="words">{parts.shown(self.model.in_words())}</p>'
        if begun := facts.begun_in_words(self.model):
            words += f'<p class="words">{parts.shown(begun)}</p>'
        return words + parts.figures(self.training) + parts.table(result) + parts.records(rows)

    def _weights(self) -> str:
        if not self.features:
            return ""
        what = "" if self.named else parts.quiet("Features are numbered from 1, as in svmlight files.")
        left_out = getattr(self.model, "scores_per_row", 1) - len(self.features)
        if len(self.features) >= facts.MOST_CLASSES and left_out > 0:
            what += parts.quiet(f"The first {len(self.features)} classes; {left_out} more are not shown.")
        columns = "".join(
            f"<div><h3>For {parts.shown(side)}</h3>"
            + parts.bars([(name, weight, f"{weight:.4g}") for name, weight in features])
            + "</div>"
            for side, features in self.features.items()
        )
        return f'{what}<div class="few">{columns}</div>'

    def _run(self) -> str:
        sizes = self.model.resources
        traffic = {name: format_bytes(v) if name.startswith("bytes") else v for name, v in self.traffic.items()}
        found = f"<pre>{parts.shown(self.command)}</pre>"
        if self.model.fingerprint:
            found += parts.quiet(f"Fingerprint of the data: {self.model.fingerprint}")
        found += parts.figures(self.throughput) + parts.table(traffic)
        if sizes:
            totals = {"allowed": sizes["budget"], "planned": sizes["planned"], "measured peak": sizes["peak"]}
            lines = {what: format_bytes(size) for what, size in sizes.get("plan", []) if size}
            found += '<h3 class="next">Memory</h3>' + parts.bars([(name, n, format_bytes(n)) for name, n in totals.items()])
            found += parts.table({**lines, **{name: format_bytes(totals[name]) for name in ("planned", "measured peak")}})
        return found


def headline(model: Model, measures: Mapping[str, Any]) -> dict[str, Any]:
    """The headline: the most telling measures, then what is proved and what it cost, as far as known."""
    single = {name.replace("_", " "): value for name, value in measures.items() if isinstance(value, float)}
    found: dict[str, Any] = dict(list(single.items())[:_HEADLINES])
    if "log loss" in single:
        found["log loss"] = single["log loss"]
    result = model.result()
    if result.get("lower_bound") is not None and result.get("primal"):
        found["above the optimum at most"] = f"{100 * result['gap'] / result['primal']:.2g} %"
    last = model.history[-1] if model.history else {}
    found |= {"passes": last["passes"]} if "passes" in last else {}
    found |= {"training": f"{last['seconds']:.3g} s"} if "seconds" in last else {}
    return found | ({"peak memory": format_bytes(model.resources["peak"])} if model.resources else {})


def report(
    model: Model | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    data: Any = None,
    feature_names: str | os.PathLike | None = None,
    plots: str | os.PathLike | None = None,
    memory: str = "auto",
    force: bool = False,
) -> Report:
    """See streamcut.api."""
    given = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    fitted = as_model(model, Ceiling(memory).expect_model)
    page = Report(fitted, data=data, vocabulary=feature_names, path=given, memory=memory)
    if path is not None:
        page.write(path, replace=force)
    if plots is not None:
        page.write_plots(plots)
    return page
