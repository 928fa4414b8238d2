"""One HTML page about a model: text, numbers and plots in one file that asks for nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcut import __version__
from streamcut.evaluation import evaluate
from streamcut.models.files import plain
from streamcut.models.model import Model
from streamcut.outputs import output
from streamcut.reports import facts
from streamcut.reports.drawing import FORMATS, inline_svg, needs_matplotlib, save
from streamcut.reports.plots import (
    confusion_plot,
    convergence_plots,
    reliability_of_classes,
    reliability_plot,
    residual_plots,
    separation_plots,
    traffic_plot,
)
from streamcut.units import format_bytes
from streamcut.visible import html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --accent: #3d8bd4; --quiet: #666; }
@media (prefers-color-scheme: dark) { :root { --quiet: #a0a4aa; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
@media (prefers-color-scheme: dark) { body { background: #15171a; color: #e4e6e9; } }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; font-weight: 600; }
p.quiet, figcaption, small { color: var(--quiet); } p.quiet { margin: .2rem 0 .6rem; }
p.words { font-size: 1.1rem; border-left: 4px solid var(--accent); padding: .4rem 1rem; background: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .22rem .9rem .22rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td + td, th + th { text-align: right; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem 2rem; }
.few { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: 1.5rem 2rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; } .wide { overflow-x: auto; } .wide + .wide { margin-top: 1rem; }
.bar { background: var(--soft); height: .8rem; border-radius: 3px; overflow: hidden; min-width: 10rem; }
.bar i { display: block; height: 100%; background: var(--accent); }
.memory { display: grid; grid-template-columns: max-content 1fr max-content; gap: .4rem 1rem; max-width: 40rem; }
.memory { align-items: center; } h3.next { margin-top: 1.5rem; }
"""
_CAPTIONS = {
    "objective": "Objective and bound", "gap": "Gap", "averages": "Objective", "accuracy": "Accuracy", "loss": "Loss",
    "support": "Support vectors", "traffic": "Throughput", "roc": "ROC curve", "precision_recall": "Precision and recall",
    "confusion": "Confusion", "reliability": "Reliability of probabilities", "residuals": "Residuals over predictions",
    "residual_histogram": "Residuals",
}  # fmt: skip


class Report:
    """All that is known of a model.

    data        what `evaluate` takes that it is measured on: a store, a table, text
    vocabulary  file with the name of each feature on a line of its own
    path        the model file, for the command that trains it again

    Raises UsageError without matplotlib, BadInputError for labels and features that the model does not know.
    """

    def __init__(
        self,
        model: Model,
        *,
        data: Any = None,
        vocabulary: str | os.PathLike | None = None,
        path: str | os.PathLike | None = None,
    ) -> None:
        needs_matplotlib()
        self.model, self.title = model, f"{model.task} model by {model.solver}"
        self.command = facts.command(model, path)
        self.traffic = facts.traffic(model)
        names = facts.names(model) if vocabulary is None else facts.vocabulary(vocabulary, model.n_features)
        self.features = facts.top_features(model, names)
        self.named = names is not None
        self.training_plots = convergence_plots(model.history)
        if (traffic := traffic_plot(model.history)) is not None:
            self.training_plots["traffic"] = traffic
        self.measures: dict[str, Any] = {}
        self.data_plots: dict[str, Figure] = {}
        if data is not None:
            held_out = data
            self.measures = evaluate(model, held_out).measures()
            if model.task == "binary":
                self.data_plots = separation_plots(model, held_out)
                if model.has_probabilities:
                    self.data_plots["reliability"] = reliability_plot(model, held_out)
            elif model.task == "regression":
                self.data_plots = residual_plots(model, held_out)
            elif "confusion_matrix" in self.measures:
                self.data_plots = {"confusion": confusion_plot(self.measures)}
                if self.measures.get("reliability"):
                    self.data_plots["reliability"] = reliability_of_classes(self.measures)

    def numbers(self) -> dict[str, Any]:
        """Everything in JSON types; the page carries it, too."""
        model = self.model
        found = {
            "title": self.title,
            "result": model.result(),
            "words": model.in_words(),
            "resources": model.resources,
            "traffic": self.traffic,
            "top_features": self.features,
            "measures": self.measures,
            "command": self.command,
            "fingerprint": model.fingerprint,
        }
        return plain(found)

    def write(self, path: str | os.PathLike, *, replace: bool = True) -> None:
        """Write the page. UsageError when the file exists, unless `replace`."""
        with output(path, prefix="report", replace=replace) as file:
            file.write(self.html().encode())

    def write_plots(self, folder: str | os.PathLike) -> list[Path]:
        """Every plot as SVG and PNG in `folder`, which is made if need be; returns the files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        written = []
        for name, figure in {**self.training_plots, **self.data_plots}.items():
            for ending in FORMATS:
                written.append(Path(folder) / f"{name}{ending}")
                save(figure, written[-1])
        return written

    def html(self) -> str:
        """The page."""
        numbers = json.dumps(self.numbers(), allow_nan=False).replace("<", "\\u003c")
        sections = [self._head(), self._training(), self._memory(), self._weights(), self._validation(), self._again()]
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html(self.title)}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n<body>\n'
            + "\n".join(filter(None, sections))
            + f'\n<script type="application/json" id="numbers">{numbers}</script>\n</body></html>\n'
        )

    def _head(self) -> str:
        result = {name: value for name, value in self.model.result().items() if not isinstance(value, dict)}
        classes = self.model.result().get("classes", {})
        rows = [{"class": name, **_some(each, ("primal", "lower_bound", "gap", "stop_reason"))} for name, each in classes.items()]
        return (
            f"<h1>{html(self.title[0].upper() + self.title[1:])}</h1>"
            f'<p class="quiet">{self.model.n_features:,} features · streamcut {__version__}</p>'
            f'<p class="words">{html(self.model.in_words())}</p>{_table(result)}{_rows(rows)}'
        )

    def _training(self) -> str:
        if not self.training_plots and not self.traffic:
            return ""
        shown = {name: format_bytes(v) if name.startswith("bytes") else _short(v) for name, v in self.traffic.items()}
        return f"<h2>Training</h2>{_figures(self.training_plots)}{_table(shown)}"

    def _memory(self) -> str:
        sizes = self.model.resources
        if not sizes:
            return ""
        totals = {"allowed": sizes["budget"], "planned": sizes["planned"], "measured peak": sizes["peak"]}
        most = max(totals.values())
        bars = "".join(
            f'<span>{name}</span><div class="bar"><i style="width:{100 * size / most:.1f}%"></i></div>'
            f"<span>{format_bytes(size)}</span>"
            for name, size in totals.items()
        )
        lines = {
            **{what: format_bytes(size) for what, size in sizes.get("plan", []) if size},
            **{name: format_bytes(totals[name]) for name in ("planned", "measured peak")},
        }
        return f'<h2>Memory</h2><div class="memory">{bars}</div><h3 class="next">What was planned</h3>{_table(lines)}'

    def _weights(self) -> str:
        if not self.features:
            return ""
        what = "" if self.named else '<p class="quiet">Features are numbered from 1, as in svmlight files.</p>'
        left_out = getattr(self.model, "scores_per_row", 1) - len(self.features)
        if len(self.features) >= facts.MOST_CLASSES and left_out > 0:
            what += f'<p class="quiet">The first {len(self.features)} classes; {left_out} more are not shown.</p>'
        columns = "".join(f"<div><h3>for {html(side)}</h3>{_weights(features)}</div>" for side, features in self.features.items())
        return f'<h2>Greatest weights</h2>{what}<div class="few">{columns}</div>'

    def _validation(self) -> str:
        if not self.measures:
            return ""
        single = {name: value for name, value in self.measures.items() if not isinstance(value, list | dict)}
        return f"<h2>On validation data</h2>{_figures(self.data_plots)}{_table(single)}{_rows(self.measures.get('classes', []))}"

    def _again(self) -> str:
        return (
            f"<h2>To train it again</h2><pre>{html(self.command)}</pre>"
            f'<p class="quiet">Fingerprint of the data: {html(self.model.fingerprint)}</p>'
        )


def _figures(figures: Mapping[str, Any]) -> str:
    drawn = "".join(
        f"<figure><figcaption>{_CAPTIONS[name.split('_by_')[0]]}</figcaption>{inline_svg(figure, name)}</figure>"
        for name, figure in figures.items()
    )
    return f'<div class="grid">{drawn}</div>' if drawn else ""


def _table(rows: Mapping[str, Any]) -> str:
    """Names of ours and values."""
    lines = "".join(f"<tr><td>{html(name.replace('_', ' '))}</td><td>{_text(value)}</td></tr>" for name, value in rows.items())
    return f'<div class="wide"><table>{lines}</table></div>' if rows else ""


def _weights(rows: Sequence[tuple[str, float]]) -> str:
    lines = "".join(f"<tr><td>{html(name)}</td><td>{weight:.6g}</td></tr>" for name, weight in rows)
    return f'<div class="wide"><table>{lines}</table></div>'


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records with the same names."""
    if not rows:
        return ""
    head = "".join(f"<th>{html(name.replace('_', ' '))}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row.values())}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _short(value: float) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def _some(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: record[name] for name in names}


def _text(value: Any) -> str:
    """All digits of what is a result: the page says what the JSON says."""
    value = plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return html(f"{value:,}" if isinstance(value, int) else repr(value) if isinstance(value, float) else str(value))
