"""The opened and checked inputs of a conversion, with their memory plan: everything before the first row."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.shown import expect_known
from streamcut.foundation.systems import give_back, resident_bytes
from streamcut.io.conversion.options import ConvertOptions, spelled
from streamcut.io.conversion.plan import ConvertPlan, make_plan
from streamcut.io.formats.finding import find_files, with_lists
from streamcut.io.formats.registry import FORMATS, FRAME, STORE
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import expect_bucket, is_url
from streamcut.io.sources.source import Sizes, Source
from streamcut.io.stores.journal import begun, expect_free, is_store
from streamcut.io.unchanged import FileStates


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversion before its first row; the fields are named as in `convert`. `kind` is the format of the inputs."""

    settings: ConvertOptions
    outputs: list[str]
    kind: str
    paths: list[str]
    side_files: list[str]
    states: FileStates
    plan: ConvertPlan
    source: Source


def prepared(inputs: Any, output: str | os.PathLike, options: dict[str, Any]) -> Prepared:
    """Open `inputs` with the `options` of `convert`. Raises what `convert` raises before it reads rows."""
    options = spelled(options)
    expect_known("convert", options, ConvertOptions.__dataclass_fields__)
    settings = ConvertOptions(**options)
    names = _names(inputs)
    outputs = output_paths(os.fspath(output), settings)
    kind, paths = (FRAME.name, []) if names is None else find_files(names, settings.format)
    kind = with_lists(kind, paths, settings.index_column)
    form = FORMATS[kind]
    settings.require_meaning(kind)
    if settings.resume and "-" in paths:
        raise UsageError("--resume: standard input cannot be read again; save it to a file, or start over with --force")
    if settings.resume and kind == FRAME.name:
        raise UsageError("resume: a frame cannot be identified as the one begun with; start over with force")
    _refuse_overlap(outputs, [*(names or ()), *paths])
    side_files = settings.side_files(kind)
    states = FileStates([] if kind == STORE.name else [*paths, *side_files])  # stores have checksums
    source = form.open([inputs] if kind == FRAME.name else paths, settings, _scratch_folder(settings, outputs[0]))
    if settings.backend == "hdf5":
        import_module("streamcut.io.stores.hdf5_store")  # counted in the base
    give_back()
    earlier = _begun_with(outputs, settings)
    widths = settings.n_features, source.n_features
    learning = "max_categories" in form.options and not (settings.hash_bits or settings.recipe)
    plan = make_plan(
        settings.memory,
        base=resident_bytes(),
        threads=settings.threads,
        shard_nnz=settings.shard_nnz or earlier.get("shard_nnz"),
        sorting=settings.sorting,
        learning=learning,
        writers=len(outputs),
        held=source.held_bytes,
        remote=is_url(outputs[0]),
        n_features=1 << settings.hash_bits if settings.hash_bits else max(filter(None, widths), default=None),
        features=earlier.get("features"),
    )
    source.begin(Sizes(plan.block_bytes, plan.row_bytes, plan.key_bytes, plan.threads))
    return Prepared(settings, outputs, kind, paths, side_files, states, plan, source)


def _scratch_folder(settings: ConvertOptions, output: str) -> str:
    """The folder of unnamed scratch files: that of the sorted runs, or next to the output."""
    if settings.scratch is None and is_url(output):
        return str(scratch_folder(None))
    return os.path.dirname(os.path.abspath(output)) if settings.scratch is None else os.fspath(settings.scratch)


def _names(inputs: Any) -> list[str] | None:
    """`inputs` as paths; None: a frame. Raises UsageError for other objects."""
    if hasattr(inputs, "__arrow_c_stream__"):
        return None
    if isinstance(inputs, str | os.PathLike):
        return [os.fspath(inputs)]
    if (
        hasattr(inputs, "shape")
        or not isinstance(inputs, Iterable)
        or not all(isinstance(name, str | os.PathLike) for name in inputs)
    ):
        raise UsageError(
            f"inputs: {type(inputs).__name__} is neither paths nor a frame (an object with __arrow_c_stream__, as pandas >= 2.2, "
            "polars, pyarrow and DuckDB have them); arrays and sparse matrices are written by streamcut.create"
        )
    return [os.fspath(name) for name in inputs]


def _begun_with(outputs: list[str], settings: ConvertOptions) -> dict:
    """The options of a conversion to be resumed: it continues with the same sizes, regardless of the memory now."""
    if not settings.resume:
        return {}
    for path in outputs:
        if options := begun(path):
            return options
        if is_store(path):
            return open_dataset(path).manifest.source.get("made_from", {})
    return {}


def output_paths(output: str, settings: ConvertOptions) -> list[str]:
    """[OUTPUT] or, with a split, [OUTPUT, the rest]: `data.zarr` and `data-test.zarr` unless --split-output says otherwise.

    Raises UsageError and NotFoundError before anything is read.
    """
    outputs = [_followed(output.rstrip("/") or output)]
    if settings.split is not None:
        stem, suffix = os.path.splitext(output.rstrip("/"))
        given = f"{stem}-test{suffix}" if settings.split_output is None else os.fspath(settings.split_output).rstrip("/")
        rest = _followed(given)
        if _real(rest) == _real(outputs[0]):
            raise UsageError(f"--split-output: {rest} is the output itself")
        outputs.append(rest)
    for path in outputs:
        if is_url(path):
            expect_bucket(path)
        elif not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise NotFoundError(f"{path}: its directory does not exist; create it first")
        expect_free(path, settings.force or settings.resume)
    return outputs


def _real(path: str) -> str:
    return path if is_url(path) else os.path.realpath(path)


def _followed(path: str) -> str:
    """The target of a symbolic link: the store there is made or replaced, and the link stays."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _refuse_overlap(outputs: list[str], paths: list[str]) -> None:
    """An output inside an input would be read as input; an input inside an output would be replaced by it."""
    for output, path in product(outputs, paths):
        if path == "-" or is_url(path) != is_url(output):
            continue
        first, second = (f"{_real(name).rstrip('/')}/" for name in (output, path))
        if first.startswith(second) or second.startswith(first):
            raise UsageError(f"{output}: lies inside the input {path}, or holds it; choose another place")
