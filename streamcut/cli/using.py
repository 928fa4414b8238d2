"""streamcut calibrate, evaluate, example, export and report: what each has beside its verb, and how its result is printed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from streamcut import api
from streamcut.cli.destinations import refuse_existing
from streamcut.cli.made import has, raw_of, raw_options
from streamcut.cli.output import note, print_json, print_rows, print_table
from streamcut.errors import UsageError
from streamcut.foundation.shown import unknown


def calibrate(
    model: str, data: str, *, output: str | None = None, force: bool = False, as_json: bool = False, quiet: bool = False,
    **asked: Any,
) -> None:  # fmt: skip
    """
    output   write the model there instead of replacing MODEL
    """
    if output is not None:
        refuse_existing(output, "--output", force, reads=[data])

    from streamcut.models.files import save_model
    from streamcut.models.link import Sigmoid

    fitted = api.calibrate(model, data, **asked)
    save_model(fitted, output or model, replace=force or output is None)
    link = fitted.link
    assert link is not None
    if as_json:
        print_json({"model": output or model, **asdict(link)})
    elif not quiet:
        said = f"A {link.A:.4g}, B {link.B:.4g}" if isinstance(link, Sigmoid) else f"scale {link.scale:.4g} and offsets"
        note(f"Probabilities from {link.rows:,} rows: {said}. Model written to {output or model}.")


@has(*raw_options("index_base", "missing_labels", "format", "strict"))
def evaluate(model: str, data: str, *, per_query: bool = False, as_json: bool = False, **asked: Any) -> None:
    """
    per_query    print a line for each query instead, as CSV (with --json: columns)
    """
    from streamcut.evaluation import evaluate_queries
    from streamcut.models.files import plain

    raw = raw_of(asked)
    if per_query:
        if asked.pop("label_names") is not None:
            raise click.UsageError("--per-query is for rankings, --label-names for sequences.")
        columns = {name: plain(column.tolist()) for name, column in evaluate_queries(model, data, raw=raw, **asked).items()}
        if as_json:
            print_json(columns)
            return
        click.echo(",".join(columns))
        for line in zip(*columns.values(), strict=True):
            click.echo(",".join("" if value is None else f"{value!r}" for value in line))
        return
    measures = api.evaluate(model, data, raw=raw, **asked).measures()
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")
    if as_json:
        print_json(measures)
        return
    print_table({name: value for name, value in measures.items() if not isinstance(value, list)})
    print_rows(measures.get("classes", measures.get("chunk_types", [])))


def example(name: str, file: str | None = None, *, force: bool = False, quiet: bool = False) -> None:
    """Write the example data NAME to FILE, to try things on; without FILE, under its own name in this folder.

    \b
    clicks        4,000 views of advertisements by time (CSV, made up)
    posts         1,500 posts on three topics (CSV, made up)
    cells         900 cells of three types (.h5ad, made up; needs anndata)
    tumours       426 breast tumours, 1 benign, -1 malignant (svmlight, real)
    tumours-test  143 more of them
    digits        1,797 images of digits (svmlight, real)

    In a shell:
      streamcut example clicks
      streamcut example tumours train.svm
    """
    from streamcut.example import EXAMPLES

    if name not in EXAMPLES:
        raise UsageError(f"NAME: {unknown(name, EXAMPLES)}")
    write, usual = EXAMPLES[name]
    place = file or usual
    refuse_existing(place, "FILE", force)
    write(place)
    if not quiet:
        note(f"Written to {place}.")


def export(
    model: str, file: str, *, to: Literal["json", "liblinear", "onnx", "sklearn"] | None, force: bool = False, **asked: Any
) -> None:  # fmt: skip
    refuse_existing(file, "FILE", force, reads=[model])
    api.export(model, file, to=to, replace=force, **asked)


def report(
    model: str, *, output: str | None = None, force: bool = False, quiet: bool = False, plots: str | None, **asked: Any
) -> None:  # fmt: skip
    """
    output   the page (.html) to write
    """
    if output is None and plots is None:
        raise click.UsageError("Give --output FILE for a page, --plots DIR for plots, or both.")
    if output is not None:
        refuse_existing(output, "--output", force, reads=[model, asked["data"], asked["feature_names"]])
    if plots is not None and Path(plots).exists() and not force and (not Path(plots).is_dir() or any(Path(plots).iterdir())):
        raise click.UsageError(f"--plots: {plots} is not an empty folder; choose another, or replace its plots with --force.")
    api.report(model, output, plots=plots, force=force, **asked)
    for what, place in (("Report", output), ("All plots", plots)):
        if place is not None and not quiet:
            note(f"{what} written to {place}.")
