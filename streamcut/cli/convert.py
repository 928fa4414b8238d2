"""`streamcut convert`: files of many kinds to a store."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.made import has, options_from, set_option
from streamcut.cli.output import note, number, print_json
from streamcut.errors import spelled
from streamcut.foundation.machine import available_cpus
from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.options import CONVERT_SETTINGS, ConvertOptions
from streamcut.io.formats.registry import listing
from streamcut.progress.display import EVERY, on_last_line

if TYPE_CHECKING:
    from streamcut.io.conversion.convert import ConvertReport, Progress
    from streamcut.io.recipe.recipe import Recipe

_WORKERS = {
    "default": None,
    "help": "Threads that parse and write.  [default: processors, at most 8]",
}


@has(
    *options_from(ConvertOptions, without=CONVERT_SETTINGS, threads=_WORKERS),
    set_option(ConvertOptions, CONVERT_SETTINGS, "format", several=False),
)
def run(
    inputs: tuple, output: str, *, dry_run: bool = False, as_json: bool = False, quiet: bool = False, **options: Any,
) -> None:  # fmt: skip
    """
    dry_run   print how features are made and the first rows as they would be (label | feature: value | …); write nothing

    \b
    {formats}

    OUTPUT is a store once its manifest.json is there, which is written last. After an interruption the same command with
    --resume goes on to the same bytes (with --shuffle or --group-by-qid the input is read again). --force removes the old
    store when the first rows of the new one are complete: to keep it until the end, write to another name.
    INPUTS and OUTPUT may be URLs (s3://, gs://, az://, …; needs streamcut[remote]).
    The order of --shuffle and the sides of --split depend on the seed and the number of the row (or its qid) alone, and
    rows of one qid stay together.

    In a shell:
      streamcut convert train.svm.gz train.zarr
      streamcut convert day*.svm days.zarr --shuffle 1 --memory 2GB
      streamcut convert all.svm data.zarr --split 0.9        # and data-test.zarr
      zcat big.gz | streamcut convert - big.zarr
      streamcut convert cells.h5ad c.zarr --label cell_type --missing-labels skip
      streamcut convert X.npz X.zarr --label y.txt
      streamcut convert clicks.parquet clicks.zarr --label click --cross site*ad --id user --hash-bits 22
      streamcut convert new.csv new.zarr --recipe m.npz      # the features that the model knows
      streamcut convert 's3://b/day*.svm' s3://b/days.zarr
    """
    threads = options.pop("threads")
    threads = min(8, available_cpus()) if threads is None else threads
    settings: dict[str, Any] = {**options.pop("settings"), **options, "threads": threads}
    if dry_run:
        _dry_run(list(inputs), output, settings, as_json)
        return
    from streamcut.io.conversion.convert import convert

    listener = None if quiet or as_json else _Line()
    report = convert(list(inputs), output, progress=listener, on_recipe=None if listener is None else _show, **settings)
    if as_json:
        print_json(_record(report))
    elif not quiet:
        _summary(report)


run.__doc__ = (run.__doc__ or "").replace("{formats}", listing().replace("\n", "\n    "))


def _dry_run(inputs: list[str], output: str, settings: dict[str, Any], as_json: bool) -> None:
    """Print on stdout how the first rows would be converted."""
    from streamcut.io.conversion.prepared import preview

    found = preview(inputs, output, **settings)
    if as_json:
        rows = [{"label": row.label, "features": row.features} for row in found.rows]
        print_json({"recipe": json.loads(found.recipe.to_json()), "rows": rows})
        return
    for line in recipe_lines(found.recipe):
        click.echo(visible(line))
    for sentence in found.told:
        note(f"note: {spelled(sentence)}")
    for row in found.rows:
        listed = (f"{name}" if value == 1 else f"{name}: {value:.6g}" for name, value in row.features.items())
        click.echo(visible(f"{'no label' if row.label is None else number(row.label)} | {' | '.join(listed)}"))


def _show(recipe: Recipe) -> None:
    for line in recipe_lines(recipe):
        note(line)


class _Line:
    """Progress on stderr: one updated line on a terminal, else a line every EVERY seconds."""

    def __init__(self) -> None:
        self._live, self._last = sys.stderr.isatty(), time.monotonic()

    def __call__(self, now: Progress) -> None:
        if self._live:
            on_last_line(progress_line(now))
        elif time.monotonic() - self._last >= EVERY["lines"]:
            self._last = time.monotonic()
            note(progress_line(now))


def progress_line(now: Progress) -> str:
    """`reading  12,345 rows  45 %  120 MB/s  ETA 0:32`."""
    parts = [now.phase, f"{now.rows:,} rows"]
    if now.share is not None:
        parts.append(f"{100 * now.share:.0f} %")
    if now.bytes_read and now.seconds > 0:
        parts.append(f"{format_bytes(now.bytes_read / now.seconds)}/s")
    elif now.seconds > 0:
        parts.append(f"{now.rows / now.seconds:,.0f} rows/s")
    if now.share and now.phase == "reading":
        left = now.seconds * (1 - now.share) / now.share
        parts.append(f"ETA {int(left // 60)}:{int(left % 60):02d}")
    return "  ".join(parts)


def _record(report: ConvertReport) -> dict[str, Any]:
    """The report in JSON types."""
    outputs = {}
    for path, statistics in report.outputs.items():
        by_label = {"labels": statistics.labels, "label_weights": statistics.label_weights}
        listed = {name: None if found is None else list(map(list, found.items())) for name, found in by_label.items()}
        outputs[path] = {**asdict(statistics), **listed}
    return {**asdict(report), "outputs": outputs}


def _summary(report: ConvertReport) -> None:
    for path, found in report.outputs.items():
        already = " (was complete)" if path in report.complete_before else ""
        counts = f"{found.n_rows:,} rows, {found.n_features:,} features, {found.nnz:,} entries"
        note(f"{path}{already}: {counts}, {describe_labels(found, dict(report.label_words))}")
        if found.groups is not None:
            note(f"  {found.groups:,} groups of equal qid")
    sizes = f"{format_bytes(report.bytes_out)} written in {report.seconds:.1f} s"
    if report.bytes_in is not None:
        speed = f" ({format_bytes(report.bytes_in / report.seconds)}/s)" if report.rows and report.seconds > 0 else ""
        sizes = f"{format_bytes(report.bytes_in)} read{speed}, {sizes}"
    note(
        f"{sizes}, {report.rows:,} rows read"
        + (f", {report.resumed_rows:,} rows were stored before" if report.resumed_rows else "")
    )
    for name, count in sorted(report.counters.items()):
        note(f"  {name.replace('_', ' ')}: {count:,}")
    for line in report.rejects:
        note(f"  left out: {line}")


def describe_labels(statistics: Any, words: Mapping[float, str]) -> str:
    """`labels -1: 24,720, 1: 7,841` (or words), or their number and range when there are many."""
    if statistics.labels is None:
        return f"labels from {number(statistics.label_min)} to {number(statistics.label_max)}"
    if len(statistics.labels) > 10:
        if words:
            first = [words.get(label, number(label)) for label in list(statistics.labels)[:5]]
            return f"{len(statistics.labels)} labels: {', '.join(first)} and more"
        return f"{len(statistics.labels)} labels from {number(statistics.label_min)} to {number(statistics.label_max)}"
    return "labels " + ", ".join(f"{words.get(label) or number(label)}: {rows:,}" for label, rows in statistics.labels.items())


def recipe_lines(recipe: Recipe) -> Iterator[str]:
    """The columns of a table, a line each."""
    table, labels = recipe.table, recipe.labels
    if table is None:
        return
    width = max(len(column.name) for column in table.columns)
    for column in table.columns:
        kind = f" ({column.type})" if column.type and column.role == "categorical" else ""
        yield f"  {column.name:<{width}}  {column.in_words()}{kind}"
    for cross in table.crosses:
        yield f"  {'*'.join(cross)}  cross"
    if labels.none:
        yield "  no labels"
    else:
        words = ", ".join(labels.names.values())
        yield f"  labels: {labels.comparison or labels.column}" + (f" ({words})" if words and not labels.comparison else "")
    how = "a dictionary" if recipe.hash_bits is None else f"hashing into 2^{recipe.hash_bits}"
    missing = {"own": "have features of their own", "zero": "have no feature", "error": "are errors"}[table.missing]
    yield f"  features by {how}; missing values {missing}"
