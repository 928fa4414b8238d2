"""One HTML page about a model: its measures, certificate, weights and options, with plots, in one self-contained file."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcut import __version__
from streamcut.config import COMMON, IN_MEMORY, SETTINGS, TrainOptions
from streamcut.errors import BadInputError
from streamcut.evaluation import collect
from streamcut.foundation.opened import read_lines
from streamcut.foundation.shown import html
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.options import CONVERT_SETTINGS
from streamcut.io.places.outputs import output
from streamcut.models.files import as_model, plain
from streamcut.models.model import BEGUN, Model
from streamcut.reports import plots as drawn
from streamcut.reports.drawing import FORMATS, inline_svg, needs_matplotlib, save, styled
from streamcut.solver_table import SOLVER_TABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADLINES = 4  # measures in the headline
_STYLE = """
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --accent: #3d8bd4; --quiet: #5f6670; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
@media (prefers-color-scheme: dark) { :root { --quiet: #a0a4aa; } body { background: #15171a; color: #e4e6e9; } }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
p.quiet, figcaption { color: var(--quiet); } p.quiet { margin: .2rem 0 .6rem; overflow-wrap: anywhere; }
p.words { border-left: 4px solid var(--accent); padding: .4rem 1rem; background: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .6rem; margin-top: 1.25rem; }
.cards div { background: var(--soft); border-radius: 6px; padding: .6rem .7rem; }
.cards b { display: block; font-size: 1.3rem; line-height: 1.3; font-weight: 600; white-space: nowrap; }
.cards span { color: var(--quiet); font-size: .85rem; display: block; line-height: 1.3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere; }
td, th { padding: .22rem 1rem .22rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 0 2rem; margin: 1rem 0; }
.facts div { display: flex; justify-content: space-between; gap: 1rem; border-bottom: 1px solid var(--line); padding: .22rem 0; }
.facts span { overflow-wrap: anywhere; } .facts span[title] { white-space: nowrap; }
.facts span + span { text-align: right; font-variant-numeric: tabular-nums; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem 2rem; }
figure { margin: 0; break-inside: avoid; } figure svg { width: 100%; height: auto; } .wide { overflow-x: auto; }
@media print { body { max-width: none; font-size: 12px; } h2 { break-after: avoid; } }
"""
_SECONDS = ("max_time",)
_NAMES = {  # for names that say too little
    "c_bar": "C × sum of row weights",
    "gap_per_c_bar": "gap in mean loss",
    "unit": "unit of the tolerance",
    "raised": "rounding added to the objective",
    "tol": "tolerance in mean loss",
    "tol_relative": "tolerance, share of objective",
    "primal": "objective",
}


class Report:
    """What is known about a model. `measures` are those of `evaluate` on `data`, {} without; `plots` (caption, figure) by name.

    data        rows to measure it on, as `evaluate` takes them: a store, a table, text; read once
    vocabulary  file with the name of each feature on a line of its own
    path        the model file, for the command that trains it again

    Raises UsageError without matplotlib, BadInputError for labels and features unknown to the model.
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
        self.command = command(model, path)
        self.measures: dict[str, Any] = {}
        self.measured_on = "" if data is None else f"{data}" if isinstance(data, str | os.PathLike) else "data in memory"
        self.plots: drawn.Plots = {}
        if data is not None:
            residuals = drawn.Residuals(model) if model.task == "regression" else None
            collected = collect(model, data, beside=[] if residuals is None else [residuals])
            self.measures = collected.measures()
            with styled():
                self.plots |= drawn.quality(collected, self.measures, residuals)
        names = _names(model, vocabulary)
        self.weights = drawn.greatest_weights(model, names)
        with styled():
            self.plots |= drawn.certificate(model.history) | drawn.weights(self.weights, named=names is not None)

    def numbers(self) -> dict[str, Any]:
        """Everything in JSON types; also embedded in the page."""
        model = self.model
        return plain(
            {
                "title": self.title,
                "result": model.result(),
                "words": model.in_words(),
                "resources": model.resources,
                "weights": self.weights,
                "measures": self.measures,
                "command": self.command,
                "fingerprint": model.fingerprint,
            }
        )

    def figures(self) -> dict[str, Figure]:
        return {name: figure for name, (_, figure) in self.plots.items()}

    def write(self, path: str | os.PathLike, *, replace: bool = True) -> None:
        """Write the page. UsageError when the file exists, unless `replace`."""
        with output(path, prefix="report", replace=replace) as file:
            file.write(self.html().encode())

    def write_plots(self, folder: str | os.PathLike) -> list[Path]:
        """Write every plot as SVG and PNG to `folder`, created if needed; returns the files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = {Path(folder) / f"{name}{ending}": figure for name, figure in self.figures().items() for ending in FORMATS}
        for path, figure in paths.items():
            save(figure, path)
        return list(paths)

    def html(self) -> str:
        model, result = self.model, self.model.result()
        single = {name: value for name, value in self.measures.items() if not isinstance(value, list | dict)}
        measured = f"On {self.measured_on}." if self.measures else "Not measured: --data takes rows that training did not see."
        classes = [{"class": name, **each} for name, each in result.get("classes", {}).items()]
        shown = {name: each for name, each in result.items() if not isinstance(each, dict | list) and each != ""}
        memory = {
            f"memory {name}": format_bytes(model.resources[name]) for name in ("budget", "planned", "peak") if model.resources
        }
        plan = {what: format_bytes(size) for what, size in model.resources.get("plan", []) if size}
        given = model.parameters.get(BEGUN)
        certified = _quiet("Found by certifying this model:") + _facts(given) if isinstance(given, dict) else ""
        sections = {
            "How good it is": _quiet(measured) + _facts(single) + self._drawn("weights", "certificate", without=True)
            + _records(self.measures.get("classes", [])),
            "Certificate": f'<p class="words">{html(model.in_words())}</p>' + certified
            + self._drawn("certificate") + _facts(shown) + _records(classes),
            "Weights": self._drawn("weights"),
            "Training": f"<pre>{html(self.command)}</pre>" + _quiet(f"Fingerprint of the data: {model.fingerprint or 'none'}")
            + _facts({**memory, **plan}),
        }  # fmt: skip
        body = "\n".join(f"<section><h2>{name}</h2>{text}</section>" for name, text in sections.items() if text)
        title = html(self.title[0].upper() + self.title[1:])
        carried = json.dumps(self.numbers(), allow_nan=False).replace("<", "\\u003c")
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n<body>\n'
            f"<h1>{title}</h1>{_quiet(f'{model.n_features:,} features · streamcut {__version__}')}{self._headline(single)}\n"
            f"{body}\n"
            f'<script type="application/json" id="numbers">{carried}</script>\n</body></html>\n'
        )

    def _headline(self, single: Mapping[str, Any]) -> str:
        """The most telling measures, then what is proved and what it cost, as far as known."""
        numbers = [(name.replace("_", " "), value) for name, value in single.items() if isinstance(value, float)]
        cards: dict[str, Any] = dict(numbers[:_HEADLINES])
        result, last = self.model.result(), self.model.history[-1] if self.model.history else {}
        if result.get("lower_bound") is not None and result.get("primal"):
            cards["above the optimum at most"] = f"{100 * result['gap'] / result['primal']:.2g} %"
        cards |= {"passes": last["passes"]} if "passes" in last else {}
        cards |= {"training": f"{last['seconds']:.3g} s"} if "seconds" in last else {}
        drawn_cards = "".join(
            f"<div><b{_exact(value)}>{_shown(value)}</b><span>{html(name)}</span></div>" for name, value in cards.items()
        )
        return f'<div class="cards">{drawn_cards}</div>' if cards else ""

    def _drawn(self, *names: str, without: bool = False) -> str:
        """The plots of these names, or all others."""
        figures = "".join(
            f"<figure><figcaption>{html(caption)}</figcaption>{inline_svg(figure, name)}</figure>"
            for name, (caption, figure) in self.plots.items()
            if (name in names) != without
        )
        return f'<div class="grid">{figures}</div>' if figures else ""


def command(model: Model, path: str | os.PathLike | None = None) -> str:
    """The command line that trains `model` again, after one that makes the store of rows that were not in one; DATA stands for
    in-memory data."""
    data, file, before = model.parameters.get("data", "DATA"), os.fspath(path or "m.npz"), ""
    if (convert := model.parameters.get("convert")) is not None:
        words = ["streamcut", "convert", data, "rows.zarr", "--recipe", file]
        for name, value in convert.items():
            flag = name.replace("_", "-")
            if name in CONVERT_SETTINGS:
                unit = "B" if name == "max_line_bytes" and isinstance(value, int) else ""
                words += ["--set", f"{flag}={value}{unit}"]
            elif value is not False:  # the default of all flags here
                words += [f"--{flag}" if value is True else f"--{flag}={value}"]
        before = f"{shlex.join(words)} && "
        data = "rows.zarr"
    words = ["streamcut", "train", data, "--output", file]
    asked = {**model.parameters, "solver": model.solver}  # the meaning of "auto" may change
    if asked.get("warm_start") == IN_MEMORY:
        del asked["warm_start"]
    known = (*COMMON, "seed", *SOLVER_TABLE[model.solver].options) if model.solver in SOLVER_TABLE else tuple(asked)
    for name, field in TrainOptions.__dataclass_fields__.items():
        value = asked.get(name, field.default)
        if name not in known or value == field.default or (name == "gamma" and asked.get("kernel") == "linear"):  # which has no γ
            continue
        if value is None:
            value = 0  # switched off
        text = f"{value!r}s" if name in _SECONDS else repr(value) if isinstance(value, float) else str(value)
        flag = name.replace("_", "-")
        words += ["--set", f"{flag}={text}"] if name in SETTINGS else [f"--{flag}", text]
    return before + shlex.join(words)


def _names(model: Model, path: str | os.PathLike | None) -> list[str] | None:
    """Names of all features, by the recipe or one on each line of the file `path`; None if there are none."""
    if path is None:
        if model.recipe is None or model.recipe.names is None:
            return None
        return [model.feature_name(j) or f"{j + 1}" for j in range(model.n_features)]
    names = read_lines(path, "vocabulary")
    if len(names) != model.n_features:
        raise BadInputError(
            f"{path}: {len(names):,} names, but the model has {model.n_features:,} features; write one name a line"
        )
    return names


def _quiet(text: str) -> str:
    return f'<p class="quiet">{html(text)}</p>'


def _facts(values: Mapping[str, Any]) -> str:
    """Names and values, in as many columns as fit."""
    lines = "".join(
        f"<div><span>{html(_NAMES.get(name, name.replace('_', ' ')))}</span><span{_exact(value)}>{_shown(value)}</span></div>"
        for name, value in values.items()
    )
    return f'<div class="facts">{lines}</div>' if values else ""


def _records(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of records with the same fields; the first field names each."""
    if not rows:
        return ""
    names = [name for name, value in rows[0].items() if not isinstance(value, list | dict)]
    head = "".join(f"<th>{html(_NAMES.get(name, name.replace('_', ' ')))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td{_exact(row[name])}>{_shown(row[name])}</td>" for name in names) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _shown(value: Any) -> str:
    """A readable value as HTML: four significant digits."""
    value = plain(value)
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return html(str(value))


def _exact(value: Any) -> str:
    """The title with all digits of a number shown with fewer."""
    value = plain(value)
    return f' title="{value!r}"' if isinstance(value, float) else ""


def report(
    model: Model | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    data: Any = None,
    feature_names: str | os.PathLike | None = None,
    plots: str | os.PathLike | None = None,
    force: bool = False,
) -> Report:
    """See streamcut.api."""
    given = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    page = Report(as_model(model), data=data, vocabulary=feature_names, path=given)
    if path is not None:
        page.write(path, replace=force)
    if plots is not None:
        page.write_plots(plots)
    return page
