"""A conversion before its first row: the opened and checked inputs, the sizes that fit its memory, and a preview of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.foundation.chunk import Chunk, concatenate, copied
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.shown import expect_known
from streamcut.foundation.systems import give_back, resident_bytes
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.conversion.options import ConvertOptions, spelled
from streamcut.io.features import BYTES
from streamcut.io.formats.finding import FileStates, find_files, with_lists
from streamcut.io.formats.registry import FORMATS, FRAME, STORE
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import expect_bucket, is_url
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.source import SLACK, Sizes, Source
from streamcut.io.stores.files import expect_free, is_store, unfinished
from streamcut.io.stores.spec import MOST_FEATURES, SHARD_NNZ
from streamcut.io.stores.writer import StoreWriter, writer_bytes

_LIMIT, _BEYOND = 10**9, 500 * 10**6  # where there is none: the first, or the second more than the least
_VARIES = 8 << 20  # between runs of a command
_SORT_LEAST = 32 << 20
_KEYS_LEAST = 8 << 20  # a dictionary of categories and words; it also gets most of the rest
_READING = 42  # bytes of memory per byte of a block of text: for the shortest lines ("1\n") arrays of the parser, and rows
_BLOCKS = (512 << 10, 128 << 10)
_SHARD_LEAST = 1 << 18
_FEATURES_LEAST = 1 << 15  # statistics of this many features always fit into SLACK
_WITHOUT_FEATURES, _FOR_FEATURES = 400 * 10**6, 0.23  # statistics of more features get this share of the memory above this


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """Sizes that fit below `limit` bytes.

    block_bytes  of text in one piece
    sort_bytes   for shuffling and grouping
    key_bytes    for a dictionary that is learned
    row_bytes    for a row that is larger than a block
    features     statistics of single features are kept up to this number
    """

    limit: int
    threads: int
    block_bytes: int
    shard_nnz: int
    sort_bytes: int
    key_bytes: int
    row_bytes: int
    features: int

    def writer(self, path: str, settings: ConvertOptions, n_features: int | None, identity: dict) -> StoreWriter:
        """A writer of the store `path`, in these sizes; `identity` (JSON types) must be equal in a resumed run and the first."""
        return StoreWriter(
            path,
            backend=settings.backend,
            shard_nnz=self.shard_nnz,
            n_features=n_features,
            options=identity,
            resume=settings.resume,
            force=settings.force,
            features=self.features,
            threads=self.threads,
        )


def make_plan(
    limit: int | None,
    base: int,
    *,
    threads: int,
    shard_nnz: int | None,
    sorting: bool = False,
    learning: bool = False,
    writers: int = 1,
    held: int = 0,
    remote: bool = False,
    n_features: int | None = None,
    features: int | None = None,
) -> ConvertPlan:
    """The largest shards, threads and blocks, in this order, that fit below `limit` (None: 1 GB, or 500 MB more than the least).

    base: resident bytes before the work; held: what the source holds in addition to blocks; remote: shards go to a URL.
    The size of shards changes the result. If `shard_nnz` is not given, it follows from `limit`, not from the current resident
    memory, unless nothing would fit. n_features: None while unknown; features: of a conversion to be resumed.
    Raises MemoryBudgetError with both numbers.
    """
    known = _LIMIT if limit is None else limit
    kept = min(max(int((known - _WITHOUT_FEATURES) * _FOR_FEATURES) // BYTES, _FEATURES_LEAST), MOST_FEATURES)
    keeping = (kept, _FEATURES_LEAST) if features is None else (features,)
    shards = [shard_nnz]
    if shard_nnz is None:
        sizes = [SHARD_NNZ >> k for k in range((SHARD_NNZ // _SHARD_LEAST).bit_length())]
        shards = [size for size in sizes if writer_bytes(size, 1, remote) <= known // 4 or size == _SHARD_LEAST]
    choices = []
    for kept, shard, count, block in product(dict.fromkeys(keeping), shards, dict.fromkeys((threads, 1)), _BLOCKS):
        counted = kept if n_features is None else n_features if n_features <= kept else 0
        tallies = writers * max(0, counted - _FEATURES_LEAST) * BYTES
        reading, writing = held + _READING * block * (count + 2 if count > 1 else 1), writer_bytes(shard, count, remote)
        # Sorted rows are written after all are read, one output at a time; otherwise reading and writing overlap.
        work = max(reading, writing) + _SORT_LEAST if sorting else reading + writers * writing
        choices.append((base + SLACK + tallies + work + learning * _KEYS_LEAST, shard, count, block, kept))
    least = min(choices)[0] + _VARIES
    limit = max(_LIMIT, least + _BEYOND) if limit is None else limit
    reserve = max(0, limit - base) // 8  # smaller blocks are better than no memory for long rows
    fitting = [choice for room in (limit - reserve, limit) for choice in choices if choice[0] <= room]
    if not fitting:
        raise MemoryBudgetError(
            f"--memory: {format_bytes(limit)} is not enough: at least {format_enough(least)} are needed, "
            f"of which the process itself takes {format_bytes(base)}; raise --memory"
        )
    needed, shard, count, block, kept = fitting[0]
    left = limit - needed
    sort_bytes = _SORT_LEAST + left // 2 if sorting else 0
    left -= left // 2 if sorting else 0
    key_bytes, row_bytes = (_KEYS_LEAST + left * 3 // 4, left // 4) if learning else (0, left)
    return ConvertPlan(limit, count, block, shard, sort_bytes, key_bytes, row_bytes, kept)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversion before its first row; the fields are named as in `convert`. `kind` is the format of the inputs."""

    settings: ConvertOptions
    outputs: list[str]
    kind: str
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
    return Prepared(settings, outputs, kind, side_files, states, plan, source)


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
        if options := unfinished(path):
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


def preview(
    inputs: Any, output: str | os.PathLike, *, rows: int = 5, **options: Any
) -> tuple[Recipe, list[dict[str, Any]], Sequence[str]]:
    """What `convert` with the same arguments would make of the first rows; nothing is written.

    Returns (the recipe as far as these rows determine it, their `label` (a word if labels are words; None: unlabelled) and
    `features` {name, or number from 0: value}, a sentence for each guess worth knowing). Raises what `convert` raises.
    """
    given = prepared(inputs, output, {**options, "on_error": "raise", "max_errors": None})
    chunks: list[Chunk] = []
    with closing(given.source.blocks()) as blocks:  # type: ignore[type-var]
        for chunk, _ in blocks:
            chunks.append(copied(chunk))
            if sum(part.n_rows for part in chunks) >= rows:
                break
    if not chunks:
        raise BadInputError("no rows in the input")
    whole, recipe = concatenate(chunks), given.source.recipe() or Recipe()
    if given.settings.feature_names is not None:
        recipe = replace(recipe, names=given.settings.feature_names)
    values, names = np.ones(whole.nnz) if whole.data is None else whole.data, recipe.names or ()
    found = []
    for label, start, stop in zip(whole.y[:rows].tolist(), whole.indptr.tolist(), whole.indptr[1:].tolist(), strict=False):
        entries = zip(whole.indices[start:stop].tolist(), values[start:stop].tolist(), strict=True)
        features = {names[j] if j < len(names) else j: value for j, value in entries}
        found.append({"label": None if recipe.labels.none else recipe.labels.names.get(label, label), "features": features})
    return recipe, found, given.source.told
