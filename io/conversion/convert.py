"""`convert`: rows of any source into stores: checked, in the requested order, in bounded memory, resumable.

    rows as they come:   source → split → one writer for each output
    shuffled, grouped:   source → split → one external sort for each output; then, one at a time: sorted rows → writer

When resumed, complete outputs stay. Rows in input order are read from the block that the writers name; rows with a qid from
the beginning, since only that shows whether a qid recurs. Sorted rows are read and sorted again (runs on disk are not trusted
after a crash), and stored rows are skipped. In every case the result has the same bytes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.foundation.chunk import Chunk, concatenate, copied
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.shown import Shown, expect_known, warn
from streamcut.foundation.systems import give_back
from streamcut.io.conversion.options import ConvertOptions, spelled
from streamcut.io.conversion.plan import (
    ConvertPlan,
    existing,
    input_names,
    lasting_options,
    make_plan,
    output_paths,
    real_path,
    without_times,
)
from streamcut.io.conversion.shuffle import ExternalSort, random_keys
from streamcut.io.formats.finding import ChangedInputError, FileStates, find_files, with_lists
from streamcut.io.formats.registry import FORMATS, FRAME, STORE
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.remote import is_url
from streamcut.io.rows import take_rows
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.io.sources.source import Sizes, describe
from streamcut.io.stores.files import files_of, is_store, settle, unfinished
from streamcut.io.stores.spec import SCRATCH
from streamcut.io.stores.writer import StoreWriter

log = logging.getLogger(__name__)

_SPLIT_STREAM = 1  # of random_keys: a split is independent of a shuffle with the same seed
_USUAL = {"files", "rows", "lines"}  # counters of nothing unusual
_EVERY = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class ConvertProgress:
    """phase: "reading" or "writing" (of sorted rows); rows: done in it; share: of the phase done, None if unknown.

    bytes_read: of input files so far, None when they come through a pipe; seconds: since the start.
    """

    phase: str
    rows: int
    share: float | None
    bytes_read: int | None
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class ConvertReport(Shown):
    """What was written.

    outputs      {path: statistics}
    counters     {what was unusual in the input: how often}, nonzero counts only
    rows         read by this run; `resumed_rows` were stored by earlier runs
    bytes_in     of the input files, None for standard input and URLs
    rejects      the first 20 lines that were left out, each with its place and the reason
    label_words  ((label, word), …) where labels are words
    """

    outputs: dict[str, Statistics]
    counters: dict[str, int]
    rows: int
    resumed_rows: int
    bytes_in: int | None
    bytes_out: int
    seconds: float
    plan: ConvertPlan
    rejects: list[str] = field(default_factory=list)
    complete_before: list[str] = field(default_factory=list)
    label_words: tuple[tuple[float, str], ...] = ()

    def shown(self) -> dict[str, object]:
        first = next(iter(self.outputs.values()), None)
        sizes = {} if first is None else {"n_rows": first.n_rows, "n_features": first.n_features, "nnz": first.nnz}
        return {"outputs": ", ".join(self.outputs), **sizes, **self.counters, "seconds": round(self.seconds, 2)}


def convert(
    inputs: object,
    output: str | os.PathLike,
    *,
    progress: Callable[[ConvertProgress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = warn,
    **options,
) -> ConvertReport:
    """See streamcut.api."""
    work, tell = Work(inputs, output, options, progress), on_told or (lambda sentence: None)
    for sentence in work.source.notes:
        tell(sentence)
    recipe = work.source.recipe()
    if on_recipe is not None and recipe is not None:
        on_recipe(recipe)
    report, sizes = work.run(), [size for _, size, _ in work.source.identity["inputs"]]
    learned = (recipe := work.source.recipe()) is not None and recipe.table is not None and work.settings.recipe is None
    del work, recipe  # what was needed on the way, such as a dictionary, is free again
    for path, written in report.outputs.items():
        counts = f"{written.n_rows:,} rows, {written.n_features:,} features, {written.nnz:,} entries"
        log.info("%s: %s", path, counts)
        if len(sizes) > 1 and set(written.labels or ()) == {-1.0, 0.0, 1.0}:
            tell("labels are -1, 0 and 1: three classes; if 0 and -1 are one, make them the same in all inputs")
    if on_told is not None and learned:
        from streamcut.io.tables.remarks import remarks

        for sentence in [remark for path in report.outputs for remark in remarks(open_dataset(path))]:
            on_told(sentence)
    return report


def preview(
    inputs: object, output: str | os.PathLike, *, rows: int = 5, **options: object
) -> tuple[Recipe, list[dict[str, Any]], Sequence[str]]:
    """What `convert` with the same arguments would make of the first rows; nothing is written.

    Returns (the recipe as far as these rows determine it, their `label` (a word if labels are words; None: unlabelled) and
    `features` {name, or number from 0: value}, a sentence for each guess to know of). Raises what `convert` raises.
    """
    work = Work(inputs, output, {**options, "on_error": "raise", "max_errors": None})
    chunks: list[Chunk] = []
    with closing(work.source.blocks()) as blocks:
        for chunk, _ in blocks:
            chunks.append(copied(chunk))
            if sum(part.n_rows for part in chunks) >= rows:
                break
    if not chunks:
        raise BadInputError("no rows in the input")
    whole, recipe = concatenate(chunks), work.recipe() or Recipe()
    values, names = np.ones(whole.nnz) if whole.data is None else whole.data, recipe.names or ()
    shown = []
    for label, start, stop in zip(whole.y[:rows].tolist(), whole.indptr.tolist(), whole.indptr[1:].tolist(), strict=False):
        entries = zip(whole.indices[start:stop].tolist(), values[start:stop].tolist(), strict=True)
        features = {names[j] if j < len(names) else j: value for j, value in entries}
        shown.append({"label": None if recipe.labels.none else recipe.labels.names.get(label, label), "features": features})
    return recipe, shown, work.source.notes


class Work:
    """One conversion: its source and the sizes that fit its memory, before the first row; then `run`. `read`: rows so far.

    Opening the inputs raises what `convert` raises before it reads rows.
    """

    def __init__(
        self,
        inputs: object,
        output: str | os.PathLike,
        options: Mapping[str, object],
        listener: Callable[[ConvertProgress], None] | None = None,
    ) -> None:
        self._listener, self._began = listener, time.monotonic()
        self._heard = self._began
        inputs, options = framed(inputs), spelled(options)
        expect_known("convert", options, ConvertOptions.__dataclass_fields__)
        self.settings = settings = ConvertOptions(**options)
        names = input_names(inputs)
        self._outputs = outputs = output_paths(os.fspath(output), settings)
        kind, paths = (FRAME.name, []) if names is None else find_files(names, settings.format)
        kind = with_lists(kind, paths, settings.index_column)
        form = FORMATS[kind]
        settings.require_meaning(kind)
        if settings.resume and "-" in paths:
            raise UsageError("--resume: standard input cannot be read again; save it to a file, or start over with --force")
        if settings.resume and kind == FRAME.name:
            raise UsageError("resume: a frame cannot be identified as the one begun with; start over with force")
        for path, other in ((path, other) for path in outputs for other in (*(names or ()), *paths) if other != "-"):
            first, second = (f"{real_path(name).rstrip('/')}/" for name in (path, other))
            if is_url(path) == is_url(other) and (first.startswith(second) or second.startswith(first)):
                # an output in an input would be read, an input in an output replaced
                raise UsageError(f"{path}: lies inside the input {other}, or holds it; choose another place")
        side_files = settings.side_files(kind)
        self._states = FileStates([] if kind == STORE.name else [*paths, *side_files])  # stores have checksums
        scratch = settings.scratch  # of unnamed files
        if scratch is None:
            scratch = scratch_folder(None) if is_url(outputs[0]) else os.path.dirname(os.path.abspath(outputs[0]))
        self.source = form.open([inputs] if is_frame(inputs) else paths, settings, os.fspath(scratch))
        if settings.backend == "hdf5":
            import_module("streamcut.io.stores.hdf5_store")  # counted in the base
        give_back()
        earlier: dict = {}  # options of what is to be resumed: it goes on with the same sizes, whatever the memory now
        for path in outputs if settings.resume else ():
            if not (earlier := earlier or unfinished(path)) and is_store(path):
                earlier = open_dataset(path).manifest.source.get("made_from", {})
        widths = settings.n_features, self.source.n_features
        self.plan = make_plan(
            settings,
            earlier,
            remote=is_url(outputs[0]),
            n_features=1 << settings.hash_bits if settings.hash_bits else max(filter(None, widths), default=None),
            learning="max_categories" in form.options and not (settings.hash_bits or settings.recipe),
            writers=len(outputs),
            held=self.source.held_bytes,
        )
        self.source.begin(Sizes(self.plan.block_bytes, self.plan.row_bytes, self.plan.key_bytes, self.plan.threads))
        described = [*self.source.identity["inputs"], *(describe(path) for path in side_files)]
        self._record = {**lasting_options(settings, self.plan, kind), "inputs": list(map(list, described))}
        self._writers, self._made = dict[str, StoreWriter](), dict[str, Manifest]()
        self.read = 0

    def recipe(self) -> Recipe | None:
        """The recipe of the source, with the feature names given by the options."""
        recipe, names = self.source.recipe(), self.settings.feature_names
        return recipe if names is None else replace(recipe or Recipe(), names=names)

    def run(self) -> ConvertReport:
        """Do all remaining work."""
        settings, resumed = self.settings, dict[str, Manifest]()
        n_features = 1 << settings.hash_bits if settings.hash_bits else self.source.n_features
        with ExitStack() as stack:
            for path in self._outputs:
                complete = existing(path, self._record, settings.force) if settings.resume and is_store(path) else None
                if complete is None:
                    writer = stack.enter_context(self.plan.writer(path, settings, n_features, self._record))
                    self._writers[path] = writer
                else:
                    settle(path)
                    resumed[path] = complete
            self._made |= resumed
            stored = sum(made.statistics.n_rows for made in resumed.values()) + sum(w.n_rows for w in self._writers.values())
            try:
                if self._writers:
                    self._sorted() if settings.sorting else self._as_they_come()
            except (BadInputError, MemoryBudgetError) as error:
                for writer in self._writers.values():  # where inputs changed, stores are a mixture of old and new rows
                    writer.abandon(rows_too=isinstance(error, ChangedInputError))
                raise
        first, recipe, sizes = self._made[self._outputs[0]].source, self.source.recipe(), self._sizes()
        return ConvertReport(
            outputs={path: self._made[path].statistics for path in self._outputs},
            counters={name: count for name, count in first.get("counters", {}).items() if count and name not in _USUAL},
            rows=self.read,
            resumed_rows=stored,
            bytes_in=None if sizes is None else sum(sizes),
            bytes_out=sum(sum(files_of(path).names().values()) for path in self._outputs),
            seconds=time.monotonic() - self._began,
            plan=self.plan,
            rejects=list(self.source.rejects) or first.get("refused", []),
            complete_before=list(resumed),
            label_words=() if recipe is None else tuple(sorted(recipe.labels.names.items())),
        )

    def _sizes(self) -> list[int] | None:
        """Bytes of each input, None where some are unknown."""
        sizes = [size for _, size, _ in self.source.identity["inputs"]]
        return None if None in sizes else sizes

    def _as_they_come(self) -> None:
        # The earliest position from which an output lacks rows; None: the beginning.
        positions = [w.position for w in self._writers.values() if w.position is not None and not w.position["has_qid"]]
        start = None
        if not self.source.rereads and len(positions) == len(self._writers):
            start = min(positions, key=lambda position: position["read"])
            for path, seen in zip(self._outputs, start["seen"], strict=True):
                if path in self._writers:
                    self._writers[path].seen = seen
        for chunk, place in self._blocks(start):
            position = {
                "source": place,
                "read": chunk.first_row,
                "seen": [self._writers[path].seen if path in self._writers else 0 for path in self._outputs],
                "has_qid": chunk.qid is not None,
            }
            for path, which in zip(self._outputs, self._split(chunk), strict=True):
                if path in self._writers:
                    self._writers[path].append(chunk if which is None else take_rows(chunk, which), position)
        for path in self._writers:
            self._finish(path)

    def _sorted(self) -> None:
        settings = self.settings
        first = 1.0 if settings.split is None else min(max(settings.split, 0.25), 0.75)
        with ExitStack() as stack:
            sorts = {}
            for path, share in zip(self._outputs, (first, 1 - first), strict=False):
                if path in self._writers:
                    sorts[path] = ExternalSort(_scratch(path, settings), int(share * self.plan.sort_bytes))
                    stack.callback(sorts[path].close)
            for chunk, _ in self._blocks(None):
                if settings.group_by_qid and chunk.qid is None:
                    raise BadInputError("--group-by-qid: the rows have no qid")
                if settings.shuffle is None and chunk.qid is not None:
                    keys = chunk.qid.astype(np.uint64)
                else:
                    keys = random_keys(settings.shuffle or 0, _numbers(chunk))
                for path, which in zip(self._outputs, self._split(chunk), strict=True):
                    if path in sorts:
                        sorts[path].add(*((chunk, keys) if which is None else (take_rows(chunk, which), keys[which])))
            for path, sort in sorts.items():
                writer = self._writers[path]
                for chunk in sort.sorted():
                    writer.append(chunk, {})
                    self._tell("writing", writer.seen, writer.seen / max(1, sort.rows), None)
                sort.close()
                self._finish(path)

    def _finish(self, path: str) -> None:
        """Finish a store, with the source's recipe."""
        if self._writers[path].seen == 0:
            raise BadInputError(f"{path}: this output gets no rows; change --split or --seed")
        source: dict[str, object] = {"made_from": without_times(self._record), "counters": dict(self.source.counters)}
        if self.source.rejects:
            source["refused"] = list(self.source.rejects)
        self._made[path] = self._writers[path].finish(source, self.recipe())
        self._writers[path].__exit__()

    def _split(self, chunk: Chunk) -> list[np.ndarray | None]:
        """Which rows of `chunk` go to each output, None: all. The first gets a row with probability `split`, by seed and row
        number (or qid) alone."""
        if self.settings.split is None:
            return [None]
        first = random_keys(self.settings.split_seed, _numbers(chunk), _SPLIT_STREAM) < np.uint64(self.settings.split * 2.0**64)
        return [np.flatnonzero(first), np.flatnonzero(~first)]

    def _blocks(self, start: dict | None) -> Iterator[tuple[Chunk, dict]]:
        """Blocks of the source from `start` on.

        Raises ChangedInputError before anything made of the changed files gets a final name.
        """
        for chunk, place in self._states.watch(self.source.blocks(None if start is None else start["source"])):
            yield chunk, place
            self.read += chunk.n_rows
            self._tell("reading", self.read, *self._share(place))
        if self.read == 0:
            raise BadInputError("no rows in the input")

    def _share(self, place: dict) -> tuple[float | None, int | None]:
        """(share of the input read, bytes of it), as far as they are known at a position of the source."""
        rows, sizes = self.source.total_rows, self._sizes()
        if rows is not None:
            share = self.read / max(1, rows)
            return share, None if sizes is None else int(share * sum(sizes))
        if sizes is None or self._listener is None or (done := sum(sizes[: place["file"]]) + place["taken"]) > sum(sizes):
            return None, None
        return done / max(1, sum(sizes)), done

    def _tell(self, phase: str, rows: int, share: float | None, bytes_read: int | None) -> None:
        """Call the listener, if there is one, at most every _EVERY seconds."""
        now = time.monotonic()
        if self._listener is not None and now - self._heard >= _EVERY:
            self._heard = now
            self._listener(ConvertProgress(phase, rows, share, bytes_read, now - self._began))


def _numbers(chunk: Chunk) -> np.ndarray:
    """What draws for a row depend on: its number, or its qid."""
    return chunk.first_row + np.arange(chunk.n_rows) if chunk.qid is None else chunk.qid


def _scratch(output: str, settings: ConvertOptions) -> Path:
    """The folder of runs: inside OUTPUT, whose lock we hold, or in --scratch (for URLs TMPDIR) under a unique name."""
    if settings.scratch is None and not is_url(output):
        return Path(output, SCRATCH)
    folder = scratch_folder(settings.scratch)
    if not folder.is_dir():
        raise NotFoundError(f"--scratch: {folder} is not a directory")
    digest = hashlib.sha256((output if is_url(output) else os.path.realpath(output)).encode()).hexdigest()[:12]
    return folder / f"{Path(output).name}.{digest}.scratch"
