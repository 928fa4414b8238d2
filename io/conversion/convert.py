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
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.shown import Shown, warn
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.prepared import ConvertPlan, Prepared, prepared
from streamcut.io.conversion.shuffle import ExternalSort, random_keys
from streamcut.io.formats.finding import ChangedInputError
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import is_url
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.rows import take_rows
from streamcut.io.sources.lazy import framed
from streamcut.io.sources.source import describe
from streamcut.io.stores.files import discard, files_of, has_rows, is_store, settle
from streamcut.io.stores.spec import SCRATCH
from streamcut.io.stores.writer import StoreWriter

log = logging.getLogger(__name__)

_SPLIT_STREAM = 1  # of random_keys: a split is independent of a shuffle with the same seed
_USUAL = {"files", "rows", "lines"}  # counters of nothing unusual
_EVERY = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Progress:
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

    def shown(self) -> dict[str, Any]:
        first = next(iter(self.outputs.values()), None)
        sizes = {} if first is None else {"n_rows": first.n_rows, "n_features": first.n_features, "nnz": first.nnz}
        return {"outputs": ", ".join(self.outputs), **sizes, **self.counters, "seconds": round(self.seconds, 2)}


def convert(
    inputs: Any,
    output: str | os.PathLike,
    *,
    progress: Callable[[Progress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = warn,
    **options,
) -> ConvertReport:
    """See streamcut.api."""
    began = time.monotonic()
    work = Work(prepared(framed(inputs), output, options), progress, began)
    for sentence in work.source.told if on_told is not None else ():
        on_told(sentence)  # type: ignore[misc]
    if on_recipe is not None and (recipe := work.source.recipe()) is not None:
        on_recipe(recipe)
    report, learned = work.run(), work.learned
    sizes = [size for _, size, _ in work.source.identity["inputs"]]
    del work  # what was needed on the way, such as a dictionary, is free again
    for path, found in report.outputs.items():
        log.info("%s: %s rows, %s features, %s entries", path, f"{found.n_rows:,}", f"{found.n_features:,}", f"{found.nnz:,}")
        if len(sizes) > 1 and set(found.labels or ()) == {-1.0, 0.0, 1.0} and on_told is not None:
            on_told("labels are -1, 0 and 1: three classes; if 0 and -1 are one, make them the same in all inputs")
    if on_told is not None and learned:
        from streamcut.io.tables.remarks import remarks

        for sentence in [said for path in report.outputs for said in remarks(open_dataset(path))]:
            on_told(sentence)
    return report


class Work:
    """One run from the source to the outputs. `read`: rows so far."""

    def __init__(self, given: Prepared, listener: Callable[[Progress], None] | None, began: float) -> None:
        self.source, self.settings, self.states, self.plan = given.source, given.settings, given.states, given.plan
        self._listener, self._began, self._heard = listener, began, time.monotonic()
        described = [*self.source.identity["inputs"], *(describe(path) for path in given.side_files)]
        self._record = {**_lasting_options(self.settings, self.plan, given.kind), "inputs": list(map(list, described))}
        self._outputs, self._writers, self._made = given.outputs, dict[str, StoreWriter](), dict[str, Manifest]()
        self.read = self._stored = 0

    @property
    def learned(self) -> bool:
        """Whether the recipe of a table was learned."""
        recipe = self.source.recipe()
        return recipe is not None and recipe.table is not None and self.settings.recipe is None

    def run(self) -> ConvertReport:
        """Do all remaining work."""
        settings = self.settings
        n_features = 1 << settings.hash_bits if settings.hash_bits else getattr(self.source, "n_features", settings.n_features)
        with ExitStack() as stack:
            for path in self._outputs:
                complete = _existing(path, self._record, settings.force) if settings.resume and is_store(path) else None
                if complete is None:
                    writer = stack.enter_context(self.plan.writer(path, settings, n_features, self._record))
                    self._writers[path] = writer
                else:
                    settle(path)
                    self._made[path] = complete
            self._stored = sum(made.statistics.n_rows for made in self._made.values())
            self._stored += sum(writer.n_rows for writer in self._writers.values())
            try:
                if self._writers:
                    self._sorted() if settings.sorting else self._as_they_come()
            except (BadInputError, MemoryBudgetError) as error:
                mixed = isinstance(error, ChangedInputError)  # stores are a mixture of old and new rows
                for path, writer in self._writers.items():
                    if path not in self._made and (mixed or not has_rows(path)):
                        writer.__exit__()
                        discard(path)
                raise
        return self._report()

    def _report(self) -> ConvertReport:
        made = {path: self._made[path] for path in self._outputs}
        first, recipe = made[self._outputs[0]].source, self.source.recipe()
        sizes = [size for _, size, _ in self.source.identity["inputs"]]
        return ConvertReport(
            outputs={path: manifest.statistics for path, manifest in made.items()},
            counters={name: count for name, count in first.get("counters", {}).items() if count and name not in _USUAL},
            rows=self.read,
            resumed_rows=self._stored,
            bytes_in=None if None in sizes else sum(sizes),
            bytes_out=sum(sum(files_of(path).names().values()) for path in made),
            seconds=time.monotonic() - self._began,
            plan=self.plan,
            rejects=self._refused() or first.get("refused", []),
            complete_before=[path for path in made if path not in self._writers],
            label_words=() if recipe is None else tuple(sorted(recipe.labels.names.items())),
        )

    def _refused(self) -> list[str]:
        """The first lines that the source left out, with the reasons."""
        return list(getattr(self.source, "rejects", ()))

    def _as_they_come(self) -> None:
        start = self._start()
        for path, seen in zip(self._outputs, start["seen"] if start is not None else (), strict=False):
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

    def _start(self) -> dict | None:
        """The earliest position from which an output lacks rows; None: the beginning."""
        positions = [writer.position for writer in self._writers.values() if writer.position is not None]
        again = getattr(self.source, "rereads", False)  # it numbers keys in order of appearance
        if again or len(positions) < len(self._writers) or any(position["has_qid"] for position in positions):
            return None
        return min(positions, key=lambda position: position["read"])

    def _sorted(self) -> None:
        first = 1.0 if self.settings.split is None else min(max(self.settings.split, 0.25), 0.75)
        with ExitStack() as stack:
            sorts = {}
            for path, share in zip(self._outputs, (first, 1 - first), strict=False):
                if path in self._writers:
                    sorts[path] = ExternalSort(_scratch(path, self.settings), int(share * self.plan.sort_bytes))
                    stack.callback(sorts[path].close)
            for chunk, _ in self._blocks(None):
                keys = self._keys(chunk)
                for path, which in zip(self._outputs, self._split(chunk), strict=True):
                    if path in sorts:
                        sorts[path].add(*((chunk, keys) if which is None else (take_rows(chunk, which), keys[which])))
            for path, sort in sorts.items():
                writer = self._writers[path]
                for chunk in sort.sorted():
                    writer.append(chunk, {})
                    self._tell("writing", writer.seen, lambda: (writer.seen / max(1, sort.rows), None))  # noqa: B023
                sort.close()
                self._finish(path)

    def _finish(self, path: str) -> None:
        """Finish a store, with the source's recipe, and the feature names given by the options."""
        if self._writers[path].seen == 0:
            raise BadInputError(f"{path}: this output gets no rows; change --split or --seed")
        recipe, names, refused = self.source.recipe(), self.settings.feature_names, self._refused()
        recipe = recipe if names is None else replace(recipe or Recipe(), names=names)
        source = {"made_from": _lasting(self._record), "counters": dict(self.source.counters)}
        self._made[path] = self._writers[path].finish(source | ({"refused": refused} if refused else {}), recipe)
        self._writers[path].__exit__()

    def _split(self, chunk: Chunk) -> list[np.ndarray | None]:
        """Which rows of `chunk` go to each output, None: all. The first gets a row with probability `split`, by seed and row
        number (or qid) alone."""
        if self.settings.split is None:
            return [None]
        first = random_keys(self.settings.split_seed, _numbers(chunk), _SPLIT_STREAM) < np.uint64(self.settings.split * 2.0**64)
        return [np.flatnonzero(first), np.flatnonzero(~first)]

    def _keys(self, chunk: Chunk) -> np.ndarray:
        """The sort keys of the rows: a random number per row or per group, or the qid itself."""
        if self.settings.group_by_qid and chunk.qid is None:
            raise BadInputError("--group-by-qid: the rows have no qid")
        if self.settings.shuffle is None and chunk.qid is not None:
            return chunk.qid.astype(np.uint64)
        return random_keys(self.settings.shuffle or 0, _numbers(chunk))

    def _blocks(self, start: dict | None) -> Iterator[tuple[Chunk, dict]]:
        """Blocks of the source from `start` on.

        Raises ChangedInputError before anything made of the changed files gets a final name.
        """
        for chunk, place in self.states.watch(self.source.blocks(None if start is None else start["source"])):
            yield chunk, place
            self.read += chunk.n_rows
            self._tell("reading", self.read, lambda: self._share(place))  # noqa: B023
        if self.read == 0:
            raise BadInputError("no rows in the input")

    def _share(self, place: dict) -> tuple[float | None, int | None]:
        """(share of the input read, bytes of it), as far as they are known at a position of the source."""
        rows = getattr(self.source, "total_rows", None)
        sizes = [size for _, size, _ in self.source.identity["inputs"]]
        if rows is not None:
            share = self.read / max(1, rows)
            return share, None if None in sizes else int(share * sum(sizes))
        if None in sizes:
            return None, None
        done = sum(sizes[: place["file"]]) + place["taken"]
        return (done / max(1, sum(sizes)), done) if done <= sum(sizes) else (None, None)

    def _tell(self, phase: str, rows: int, share: Callable[[], tuple[float | None, int | None]]) -> None:
        """Call the listener, if there is one, at most every _EVERY seconds."""
        now = time.monotonic()
        if self._listener is not None and now - self._heard >= _EVERY:
            self._heard = now
            self._listener(Progress(phase, rows, *share(), now - self._began))


def _lasting_options(settings: ConvertOptions, plan: ConvertPlan, kind: str) -> dict:
    """The options that determine the content of the store: a conversion resumes only with the same."""
    passing = {"memory", "threads", "scratch", "resume", "force", "split_output", "backend", "wide_index", "max_line_bytes"}
    passing |= {"header"} if settings.header else set()
    given = replace(settings, recipe=None, feature_names=None)
    kept = {name: value for name, value in asdict(given).items() if name not in passing and value not in (None, (), [])}
    if settings.feature_names is not None:
        kept["feature_names"] = hashlib.sha256("\n".join(settings.feature_names).encode()).hexdigest()
    if settings.recipe is not None:
        kept["recipe"] = hashlib.sha256(settings.recipe.to_json()).hexdigest()
    return {**kept, "format": kind, "shard_nnz": plan.shard_nnz, "features": plan.features}


def _lasting(record: dict) -> dict:
    """`record` without what differs between equal conversions of equal data: modification times and memory."""
    kept = {name: value for name, value in record.items() if name != "features"}
    return {**kept, "inputs": [[name, size] for name, size, _ in record["inputs"]]}


def _existing(path: str, record: dict, force: bool) -> Manifest | None:
    """The manifest of the store at `path` if a resumed conversion would make the same; None: it is to be replaced.

    Raises UsageError when it is a different store, unless `force`.
    """
    try:
        manifest = open_dataset(path).manifest
    except StreamcutError:
        if force:
            return None
        raise
    if manifest.source.get("made_from") == _lasting(record):
        return manifest
    if force:
        return None
    raise UsageError(f"{path}: exists and was made from other data or with other options; replace it with --force")


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
