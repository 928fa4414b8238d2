"""What a conversion is before its first row: its inputs and outputs, sizes that fit its memory, and what makes two the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import product

from streamcut.errors import MemoryBudgetError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation.systems import resident_bytes
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.features import BYTES
from streamcut.io.manifest import Manifest
from streamcut.io.opening import open_dataset
from streamcut.io.remote import expect_bucket, is_url
from streamcut.io.sources.lazy import is_frame
from streamcut.io.sources.source import SLACK
from streamcut.io.stores.files import expect_free
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
    settings: ConvertOptions,
    earlier: dict,
    *,
    remote: bool,
    n_features: int | None,
    learning: bool = False,
    writers: int = 1,
    held: int = 0,
) -> ConvertPlan:
    """The largest shards, threads and blocks, in this order, that fit below --memory (by default 1 GB, or 500 MB more than the
    least) with what is resident now.

    earlier: the options of what is to be resumed; remote: shards go to a URL; n_features: None while unknown; held: what the
    source holds in addition to blocks. The size of shards changes the result: unless it is set, it follows from the limit, not
    from the current resident memory, unless nothing would fit. Raises MemoryBudgetError with both numbers.
    """
    limit, threads, base, sorting = settings.memory, settings.threads, resident_bytes(), settings.sorting
    shard_nnz, features = settings.shard_nnz or earlier.get("shard_nnz"), earlier.get("features")
    assumed = _LIMIT if limit is None else limit
    kept = min(max(int((assumed - _WITHOUT_FEATURES) * _FOR_FEATURES) // BYTES, _FEATURES_LEAST), MOST_FEATURES)
    keeping = (kept, _FEATURES_LEAST) if features is None else (features,)
    shards = [shard_nnz]
    if shard_nnz is None:
        sizes = [SHARD_NNZ >> k for k in range((SHARD_NNZ // _SHARD_LEAST).bit_length())]
        shards = [size for size in sizes if writer_bytes(size, 1, remote) <= assumed // 4 or size == _SHARD_LEAST]
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
    sort_bytes, left = (_SORT_LEAST + left // 2, left - left // 2) if sorting else (0, left)
    key_bytes, row_bytes = (_KEYS_LEAST + left * 3 // 4, left // 4) if learning else (0, left)
    return ConvertPlan(limit, count, block, shard, sort_bytes, key_bytes, row_bytes, kept)


def input_names(inputs: object) -> list[str] | None:
    """`inputs` as paths; None: a frame. Raises UsageError for other objects."""
    if is_frame(inputs):
        return None
    names = [inputs]
    if isinstance(inputs, Iterable) and not isinstance(inputs, str) and not hasattr(inputs, "shape"):
        names = list(inputs)
    paths = [os.fspath(name) for name in names if isinstance(name, str | os.PathLike)]
    if len(paths) < len(names):
        raise UsageError(
            f"inputs: {type(inputs).__name__} is neither paths nor a frame (an object with __arrow_c_stream__, as pandas >= 2.2, "
            "polars, pyarrow and DuckDB have them); arrays and sparse matrices are written by streamcut.create"
        )
    return paths


def output_paths(output: str, settings: ConvertOptions) -> list[str]:
    """[OUTPUT] or, with a split, [OUTPUT, the rest]: `data.zarr` and `data-test.zarr` unless --split-output says otherwise.

    Where one is a symbolic link, the store at its target is made or replaced, and the link stays. Raises UsageError and
    NotFoundError before anything is read.
    """
    outputs = [output.rstrip("/") or output]
    if settings.split is not None:
        stem, suffix = os.path.splitext(outputs[0])
        outputs.append(f"{stem}-test{suffix}" if settings.split_output is None else os.fspath(settings.split_output).rstrip("/"))
    outputs = [os.path.realpath(path) if os.path.islink(path) else path for path in outputs]
    if len({real_path(path) for path in outputs}) < len(outputs):
        raise UsageError(f"--split-output: {outputs[1]} is the output itself")
    for path in outputs:
        if is_url(path):
            expect_bucket(path)
        elif not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise NotFoundError(f"{path}: its directory does not exist; create it first")
        expect_free(path, settings.force or settings.resume)
    return outputs


def real_path(path: str) -> str:
    """`path` without symbolic links."""
    return path if is_url(path) else os.path.realpath(path)


def lasting_options(settings: ConvertOptions, plan: ConvertPlan, kind: str) -> dict:
    """The options that determine the content of the store: a conversion resumes only with the same."""
    passing = {"memory", "threads", "scratch", "resume", "force", "split_output", "backend", "wide_index", "max_line_bytes"}
    passing |= {"header"} if settings.header else set()
    lasting = asdict(replace(settings, recipe=None, feature_names=None))
    lasting = {name: value for name, value in lasting.items() if name not in passing and value not in (None, (), [])}
    if settings.feature_names is not None:
        lasting["feature_names"] = hashlib.sha256("\n".join(settings.feature_names).encode()).hexdigest()
    if settings.recipe is not None:
        lasting["recipe"] = hashlib.sha256(settings.recipe.to_json()).hexdigest()
    return {**lasting, "format": kind, "shard_nnz": plan.shard_nnz, "features": plan.features}


def without_times(record: dict) -> dict:
    """`record` without what differs between equal conversions of equal data: modification times and memory."""
    kept = {name: value for name, value in record.items() if name != "features"}
    return {**kept, "inputs": [[name, size] for name, size, _ in record["inputs"]]}


def existing(path: str, record: dict, force: bool) -> Manifest | None:
    """The manifest of the store at `path` if a resumed conversion would make the same; None: it is to be replaced.

    Raises UsageError when it is a different store, unless `force`.
    """
    try:
        manifest = open_dataset(path).manifest
    except StreamcutError:
        if force:
            return None
        raise
    if manifest.source.get("made_from") == without_times(record):
        return manifest
    if force:
        return None
    raise UsageError(f"{path}: exists and was made from other data or with other options; replace it with --force")
