"""One HTML page about a model: certificate, measures, weights and training, with plots, in one self-contained file."""

from __future__ import annotations

import json
import os
import shlex
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamcut import __version__
from streamcut.config import COMMON, IN_MEMORY, OPTIONS, ROWS_IN_MEMORY, SETTINGS, TrainOptions, of_other_kernels
from streamcut.errors import BadInputError
from streamcut.evaluation import collect
from streamcut.foundation.opened import read_lines
from streamcut.foundation.shown import html
from streamcut.foundation.units import format_bytes, format_number
from streamcut.io.conversion.options import CONVERT_SETTINGS
from streamcut.io.outputs import output
from streamcut.models.certificate import SCALES
from streamcut.models.files import as_model, plain
from streamcut.models.model import BEGUN, Model
from streamcut.reports import plots as drawn
from streamcut.reports.weights import Weight, greatest
from streamcut.solver_table import SOLVER_TABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_CLASSES, _MOST_WEIGHTS = 8, 20  # classes with weights shown, and weights of a class
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
td, th { padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #8883; text-align: left; vertical-align: top; }
pre { background: #8881; padding: .8rem; white-space: pre-wrap; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; break-inside: avoid; } img { width: 100%; }
"""


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
        data: object = None,
        vocabulary: str | os.PathLike | None = None,
        path: str | os.PathLike | None = None,
    ) -> None:
        self.model, self.title = model, f"{model.task} model by {model.solver}"
        self.command = command(model, path)
        self.measures: Mapping[str, Any] = {}
        self.measured_on = "" if data is None else f"{data}" if isinstance(data, str | os.PathLike) else "data in memory"
        self.weights = _greatest_weights(model, _names(model, vocabulary))
        with drawn.styled():
            self.plots: drawn.Plots = drawn.certificate(model.history) | drawn.weights(self.weights)
            if data is None:
                return
            collected = collect(model, data, into=drawn.Residuals(model) if model.task == "regression" else None)
            self.measures = collected.measures()
            self.plots |= drawn.quality(collected, self.measures)

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
        paths = {Path(folder) / f"{name}{ending}": figure for name, figure in self.figures().items() for ending in drawn.FORMATS}
        for path, figure in paths.items():
            drawn.save(figure, path)
        return list(paths)

    def html(self) -> str:
        model, result = self.model, self.model.result()
        measured = f"On {self.measured_on}." if self.measures else "Not measured: --data takes rows that training did not see."
        classes = [{"class": name, **values} for name, values in result.get("classes", {}).items()]
        before = model.parameters.get(BEGUN)
        certified = f"<p>Found by certifying this model:</p>{_facts(before)}" if isinstance(before, dict) else ""
        sizes = [(f"memory {name}", model.resources[name]) for name in ("budget", "planned", "peak") if model.resources]
        sizes += [(what, size) for what, size in model.resources.get("plan", []) if size]
        sections = {
            "Certificate": f"<p>{html(model.in_words())}</p>{certified}{_facts(result)}{_records(classes)}",
            "How good it is": f"<p>{html(measured)}</p>{_facts(self.measures)}{_records(self.measures.get('classes', []))}",
            "Plots": self._figures(),
            "Training": f"<pre>{html(self.command)}</pre><p>Fingerprint of the data: {html(model.fingerprint or 'none')}</p>"
            + _facts({name: format_bytes(size) for name, size in sizes}),
        }
        body = "\n".join(f"<section><h2>{name}</h2>{text}</section>" for name, text in sections.items() if text)
        title = html(self.title[0].upper() + self.title[1:])
        carried = json.dumps(self.numbers(), allow_nan=False).replace("<", "\\u003c")
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n<body>\n'
            f"<h1>{title}</h1><p>{model.n_features:,} features · streamcut {__version__}</p>\n{body}\n"
            f'<script type="application/json" id="numbers">{carried}</script>\n</body></html>\n'
        )

    def _figures(self) -> str:
        images = [
            f'<figure><figcaption>{html(caption)}</figcaption><img alt="{html(caption)}" src="data:image/svg+xml;base64,'
            f'{b64encode(drawn.rendered(figure, "svg", name)).decode()}"></figure>'
            for name, (caption, figure) in self.plots.items()
        ]
        return f'<div class="grid">{"".join(images)}</div>' if images else ""


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
    words = ["streamcut", "train", *(data if isinstance(data, list) else [data]), "--output", file]
    asked = {**model.parameters, "solver": model.solver}  # the meaning of "auto" may change
    for name, unnamed in (("warm_start", IN_MEMORY), ("validation", ROWS_IN_MEMORY)):
        if asked.get(name) == unnamed or isinstance(asked.get(name), list):  # the command takes one path
            del asked[name]
    options = (*COMMON, "seed", *SOLVER_TABLE[model.solver].options) if model.solver in SOLVER_TABLE else tuple(asked)
    for name, field in TrainOptions.__dataclass_fields__.items():
        value = asked.get(name, field.default)
        if name not in options or value == field.default or name in of_other_kernels(asked.get("kernel", "linear")):
            continue
        if value is None:
            value = 0  # switched off
        text = f"{value!r}s" if OPTIONS[name].kind == "seconds" else repr(value) if isinstance(value, float) else str(value)
        flag = name.replace("_", "-")
        words += ["--set", f"{flag}={text}"] if name in SETTINGS else [f"--{flag}", text]
    return before + shlex.join(words)


def _names(model: Model, path: str | os.PathLike | None) -> list[str] | None:
    """A name of each feature, on a line of the file `path`; None without a file."""
    if path is None:
        return None
    names = read_lines(path, "feature_names")
    if len(names) != model.n_features:
        raise BadInputError(
            f"{path}: {len(names):,} names, but the model has {model.n_features:,} features; write one name a line"
        )
    return names


def _greatest_weights(model: Model, names: list[str] | None) -> dict[str, list[tuple[str, float]]]:
    """The features with the weights greatest in magnitude, (name, weight), by class. `names` are those of the features; None: the
    model's, and else their numbers."""

    def named(weight: Weight) -> tuple[str, float]:
        return (names[weight.feature or 0] if names else weight.shown), weight.weight

    several = max(4, 2 * _MOST_WEIGHTS // min(model.scores_per_row, _MOST_CLASSES))
    weights = greatest(model, top=_MOST_WEIGHTS, several=several, classes=_MOST_CLASSES)
    return {label: list(map(named, listed)) for label, listed in weights.items()}


def _facts(values: Mapping[str, object]) -> str:
    """A table of names and single values."""
    return _table([html(name.replace("_", " ")), _shown(value)] for name, value in _single(values).items() if value != "")


def _single(values: Mapping[str, object]) -> dict[str, object]:
    """Those that fit in a cell and say something to people."""
    return {name: value for name, value in values.items() if not isinstance(value, list | dict) and name not in SCALES}


def _records(rows: list[dict[str, object]]) -> str:
    """A table of records with the same fields."""
    names = list(_single(rows[0])) if rows else []
    head = [f"<b>{html(name.replace('_', ' '))}</b>" for name in names]
    return _table([head, *([_shown(row[name]) for name in names] for row in rows)]) if rows else ""


def _table(rows: Iterable[list[str]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>" if lines else ""


def _shown(value: object) -> str:
    """A readable value as HTML; the JSON has all digits."""
    return html(format_number(plain(value)))


def report(
    model: Model | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    data: object = None,
    feature_names: str | os.PathLike | None = None,
    plots: str | os.PathLike | None = None,
    force: bool = False,
) -> Report:
    """See streamcut.api."""
    model_path = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    page = Report(as_model(model), data=data, vocabulary=feature_names, path=model_path)
    if path is not None:
        page.write(path, replace=force)
    if plots is not None:
        page.write_plots(plots)
    return page
