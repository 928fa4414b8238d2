"""streamcut convert and info: files of many kinds to a store, and what is in one, or in a model."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.made import has, options_from, set_option
from streamcut.cli.output import counted, note, number, print_json
from streamcut.errors import CorruptError, spelled
from streamcut.foundation.redaction import redacted
from streamcut.foundation.shown import visible
from streamcut.foundation.systems import available_cpus
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.options import CONVERT_SETTINGS, ConvertOptions
from streamcut.io.formats.registry import listing
from streamcut.io.remote import is_url, size_of
from streamcut.progress import EVERY, on_last_line

if TYPE_CHECKING:
    from streamcut.io.conversion.convert import ConvertProgress, ConvertReport
    from streamcut.io.manifest import Manifest, Statistics
    from streamcut.io.recipe.recipe import Recipe

_WORKERS = {"default": None, "help": "Threads that parse and write.  [default: processors, at most 8]"}
_HIDDEN = {"certificate", "parameters", "resources", "facts", "source", "label_min", "label_max", "label_words", "feature_names"}


@has(
    *options_from(ConvertOptions, without=CONVERT_SETTINGS, threads=_WORKERS),
    set_option(ConvertOptions, CONVERT_SETTINGS, "format", several=False),
)
def convert(
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
    settings = {**options.pop("settings"), **options, "threads": threads}
    if dry_run:
        _dry_run(list(inputs), output, settings, as_json)
        return
    from streamcut import api

    listener = None if quiet or as_json else _Line()
    report = api.convert(list(inputs), output, progress=listener, on_recipe=None if listener is None else _show, **settings)
    if as_json:
        print_json(_record(report))
    elif not quiet:
        _summary(report)


convert.__doc__ = (convert.__doc__ or "").replace("{formats}", listing().replace("\n", "\n    "))


def _dry_run(inputs: list[str], output: str, settings: dict[str, Any], as_json: bool) -> None:
    """Print on stdout how the first rows would be converted."""
    from streamcut.io.conversion.convert import preview

    recipe, rows, guesses = preview(inputs, output, **settings)
    if as_json:
        print_json({"recipe": json.loads(recipe.to_json()), "rows": rows})
        return
    for line in recipe_lines(recipe):
        click.echo(visible(line))
    for sentence in guesses:
        note(f"note: {spelled(sentence)}")
    for row in rows:
        listed = (f"{name}" if value == 1 else f"{name}: {value:.6g}" for name, value in row["features"].items())
        click.echo(visible(f"{'no label' if row['label'] is None else number(row['label'])} | {' | '.join(listed)}"))


def _show(recipe: Recipe) -> None:
    for line in recipe_lines(recipe):
        note(line)


class _Line:
    """Progress on stderr: one updated line on a terminal, else a line every EVERY seconds."""

    def __init__(self) -> None:
        self._live, self._last = sys.stderr.isatty(), time.monotonic()

    def __call__(self, now: ConvertProgress) -> None:
        if self._live:
            on_last_line(progress_line(now))
        elif time.monotonic() - self._last >= EVERY["lines"]:
            self._last = time.monotonic()
            note(progress_line(now))


def progress_line(now: ConvertProgress) -> str:
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


def _record(report: ConvertReport) -> dict[str, object]:
    """The report in JSON types."""
    outputs = {}
    for path, statistics in report.outputs.items():
        by_label = {"labels": statistics.labels, "label_weights": statistics.label_weights}
        listed = {name: None if counts is None else list(map(list, counts.items())) for name, counts in by_label.items()}
        outputs[path] = {**asdict(statistics), **listed}
    return {**asdict(report), "outputs": outputs}


def _summary(report: ConvertReport) -> None:
    for path, statistics in report.outputs.items():
        already = " (was complete)" if path in report.complete_before else ""
        counts = f"{statistics.n_rows:,} rows, {statistics.n_features:,} features, {statistics.nnz:,} entries"
        note(f"{path}{already}: {counts}, {describe_labels(statistics, dict(report.label_words))}")
        if statistics.groups is not None:
            note(f"  {statistics.groups:,} groups of equal qid")
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


def describe_labels(statistics: Statistics, words: Mapping[float, str]) -> str:
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
    """The columns of a table, one per line."""
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


def info(path: str, *, check: bool = False, read_data: bool = False, as_json: bool = False) -> None:
    """Show the rows, features, labels, shards, sizes and origin of the store PATH, or the contents of the model file PATH.

    check       check names, lengths and metadata of the store's files instead, and list problems; exit code 5 if there are any
    read_data   with --check: read every byte, and compare checksums

    In a shell:
      streamcut info train.zarr
      streamcut info m.npz --json
      streamcut info train.zarr --check --read-data
    """
    if check:
        _check(path, read_data, as_json)
        return
    if read_data:
        raise click.UsageError("--read-data is for --check.")

    from streamcut.io.opening import open_dataset
    from streamcut.models.files import is_model, load_model, plain

    if is_model(path):
        model, size = load_model(path), size_of(path) if is_url(path) else os.path.getsize(path)
        record: dict[str, Any] = {
            **plain({"path": redacted(path), "bytes": size, **model.describe()}),
            **_of_recipe(model.recipe),
        }
    else:
        store = open_dataset(path)
        record = {**describe(store.manifest, path), **_of_recipe(store.recipe)}
    if as_json:
        print_json(record)
    else:
        for name, value in _for_people(record).items():
            click.echo(f"{visible(name.replace('_', ' ')):<18} {visible(number(value))}")
        for what, size in record.get("resources", {}).get("plan", []):
            click.echo(f"  {visible(what):<58} {format_bytes(size):>8}")


def _check(path: str, read_data: bool, as_json: bool) -> None:
    from streamcut.io.stores.verify import verify_store

    report = verify_store(path, read_data=read_data)
    if as_json:
        print_json({**asdict(report), "sound": report.sound})
    else:
        for problem in report.problems:
            click.echo(visible(problem))
        for name in report.unexpected:
            note(f"{path}/{name}: not part of the store, but harmless")
    if not report.sound:
        raise CorruptError(f"{path}: {counted(len(report.problems), 'problem')} found; convert the data again")
    if not as_json:
        how = "every byte read" if read_data else "names, lengths and metadata; --read-data reads every byte"
        parts = f"{counted(report.shards, 'shard')}, {counted(report.files, 'file')}, {format_bytes(report.bytes)}"
        note(f"{path}: sound: {parts} ({how})")


def describe(manifest: Manifest, path: str) -> dict[str, object]:
    """The store in JSON types. Bytes: on disk (None for a URL), and of all shards decoded."""
    from streamcut.io.dataset import shard_bytes
    from streamcut.io.sources.source import tree_bytes

    s = manifest.statistics
    return {
        "path": path,
        "rows": s.n_rows,
        "features": s.n_features,
        "nnz": s.nnz,
        "density": s.nnz / (s.n_rows * s.n_features) if s.n_features else 0.0,
        "longest_row": s.max_row_nnz,
        "labels": None if s.labels is None else [[label, rows] for label, rows in s.labels.items()],
        "label_min": s.label_min,
        "label_max": s.label_max,
        "groups": s.groups,
        "weight_sum": s.weight_sum,
        "max_abs_value": s.max_abs_value,
        "max_squared_norm": s.max_squared_norm,
        "value_types": dict(Counter("all 1" if shard.ones else shard.arrays["data"].dtype for shard in manifest.shards)),
        "shards": len(manifest.shards),
        "shard_nnz_max": max(shard.nnz for shard in manifest.shards),
        "bytes_on_disk": tree_bytes(path) if os.path.exists(path) else None,
        "bytes_decoded": sum(shard_bytes(manifest, shard) for shard in manifest.shards),
        "backend": manifest.backend,
        "codec": "blosc(lz4, shuffle) + crc32c" if manifest.backend == "zarr" else "HDF5",
        "format_version": manifest.format_version,
        "streamcut_version": manifest.streamcut_version,
        "fingerprint": manifest.fingerprint,
        "source": manifest.source,
    }


def _of_recipe(recipe: Recipe | None) -> dict[str, object]:
    """How rows became features and labels, in JSON types."""
    if recipe is None:
        return {}
    words = [[number, word] for number, word in sorted(recipe.labels.names.items())]
    names = None if recipe.names is None else list(recipe.names)
    return {"prepared": recipe.in_words(), "label_words": words or None, "feature_names": names}


def _for_people(record: dict[str, Any]) -> dict[str, object]:
    """What is shown of the record of a store or a model: names, labels and inputs by a few, sizes with units."""
    from streamcut.models.certificate import SCALES

    resources, source = record.get("resources", {}), record.get("source", {})
    shown = {name: value for name, value in record.items() if name not in _HIDDEN} | (record.get("certificate") or {})
    words, names = dict(record.get("label_words") or []), record.get("feature_names")
    if record["labels"]:
        listed = [entry if isinstance(entry, list) else [entry, None] for entry in record["labels"]]
        texts = [f"{words.get(label, number(label))}" + ("" if rows is None else f": {rows:,}") for label, rows in listed]
        shown["labels"] = _some(texts, 20)
    elif "label_min" in record:
        shown["labels"] = f"more than can be listed, from {number(record['label_min'])} to {number(record['label_max'])}"
    else:  # a ranking, or numbers
        del shown["labels"]
    if isinstance(record.get("kernel"), dict):
        kernel = dict(record["kernel"])
        shown["kernel"] = ", ".join([kernel.pop("name"), *(f"{name} {number(value)}" for name, value in kernel.items())])
    if "density" in record:
        shown["density"] = f"{100 * record['density']:.3g} %"
        shown["value_types"] = ", ".join(f"{kind} ({shards:,})" for kind, shards in record["value_types"].items())
    sizes: dict[str, int | None] = {name: record[name] for name in ("bytes_on_disk", "bytes_decoded") if name in record}
    sizes |= {f"memory {name}": resources[name] for name in ("budget", "peak", "planned") if name in resources}
    shown |= {name: None if size is None else format_bytes(size) for name, size in sizes.items()}
    origin, data = source.get("made_from", {}), record.get("parameters", {}).get("data")
    inputs = [name for name, _ in origin.get("inputs", [])]
    for title, values in (("feature_names", names), ("trained on", data), ("made from", inputs)):
        if values:
            shown[title] = _some(values, 5) if isinstance(values, list) else values
    shown |= {name: origin[name] for name in ("shuffle", "split", "group_by_qid") if origin.get(name) not in (None, False)}
    counters = source.get("counters", {}).items()
    shown = {name: value for name, value in shown.items() if name not in SCALES}
    return shown | {f"input {name}": count for name, count in counters if count and name not in ("files", "rows")}


def _some(names: list[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f", and {more:,} more" if more > 0 else "")
