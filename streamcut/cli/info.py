"""`streamcut info`: describes a store, or a model; `--check` compares its files with their checksums."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.output import counted, note, number, print_json
from streamcut.errors import CorruptError
from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_bytes

if TYPE_CHECKING:
    from streamcut.io.recipe.recipe import Recipe


def run(path: str, *, check: bool = False, read_data: bool = False, as_json: bool = False) -> None:
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
    from streamcut.models.files import describe_model, is_model, load_model

    if is_model(path):
        model = load_model(path)
        record = {**describe_model(model, path), **_of_recipe(model.recipe)}
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


def describe(manifest: Any, path: str) -> dict[str, Any]:
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


def _of_recipe(recipe: Recipe | None) -> dict[str, Any]:
    """How rows became features and labels, in JSON types."""
    if recipe is None:
        return {}
    words = [[number, word] for number, word in sorted(recipe.labels.names.items())]
    found = {"prepared": recipe.in_words(), "label_words": words or None}
    return {**found, "feature_names": None if recipe.names is None else list(recipe.names)}


def _for_people(record: dict[str, Any]) -> dict[str, Any]:
    """What is shown of the record of a store or a model: names, labels and inputs by a few, sizes with units."""
    hidden = (
        "certificate",
        "parameters",
        "resources",
        "facts",
        "source",
        "label_min",
        "label_max",
        "label_words",
        "feature_names",
    )
    shown = {name: value for name, value in record.items() if name not in hidden} | (record.get("certificate") or {})
    words = dict(record.get("label_words") or [])
    if record["labels"]:
        listed = [each if isinstance(each, list) else [each, None] for each in record["labels"]]
        texts = [f"{words.get(label, number(label))}" + ("" if rows is None else f": {rows:,}") for label, rows in listed]
        shown["labels"] = _some(texts, 20)
    elif "label_min" in record:
        shown["labels"] = f"more than can be listed, from {number(record['label_min'])} to {number(record['label_max'])}"
    else:  # a ranking, or numbers
        del shown["labels"]
    if record.get("feature_names") is not None:
        shown["feature_names"] = _some(record["feature_names"], 5)
    if isinstance(record.get("kernel"), dict):
        kernel = dict(record["kernel"])
        shown["kernel"] = ", ".join([kernel.pop("name"), *(f"{name} {number(value)}" for name, value in kernel.items())])
    if "density" in record:
        shown["density"] = f"{100 * record['density']:.3g} %"
        shown["value_types"] = ", ".join(f"{kind} ({shards:,})" for kind, shards in record["value_types"].items())
    sizes: dict[str, Any] = {name: record[name] for name in ("bytes_on_disk", "bytes_decoded") if name in record}
    sizes |= {
        f"memory {name}": record["resources"][name]
        for name in ("budget", "peak", "planned")
        if name in record.get("resources", {})
    }
    shown |= {name: None if size is None else format_bytes(size) for name, size in sizes.items()}
    if "data" in record.get("parameters", {}):
        data = record["parameters"]["data"]
        shown["trained on"] = _some(data, 5) if isinstance(data, list) else data
    source = record.get("source", {})
    origin = source.get("made_from", {})
    if inputs := [name for name, _ in origin.get("inputs", [])]:
        shown["made from"] = _some(inputs, 5)
    shown |= {name: origin[name] for name in ("shuffle", "split", "group_by_qid") if origin.get(name) not in (None, False)}
    counters = source.get("counters", {}).items()
    return shown | {f"input {name}": count for name, count in counters if count and name not in ("files", "rows")}


def _some(names: list[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f", and {more:,} more" if more > 0 else "")
