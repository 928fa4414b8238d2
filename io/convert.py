"""`convert`: rows of any source into a store: checked, in the order asked for, in bounded memory, resumable.

    rows as they come:   source → split → one writer for each output
    shuffled, grouped:   source → split → one external sort for each output; then, one after the other: sorted rows → writer

What a resumed run does: outputs that are complete stay. Rows as they come are read on from the block that the writers name; rows
with a qid from the beginning, because only that tells whether one comes back. Sorted rows are read and sorted again (runs on disk
are not trusted after a crash), and those already stored are passed over. In every case the result has the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.io.convert_options import ConvertOptions
from streamcut.io.convert_plan import ConvertPlan, make_plan, resident_bytes
from streamcut.io.convert_progress import Progress, Reporter
from streamcut.io.convert_target import Target
from streamcut.io.manifest import Statistics
from streamcut.io.rejects import RejectsFile
from streamcut.io.shuffle import ExternalSort, random_keys
from streamcut.io.source_choice import open_readers, open_source, source_bytes
from streamcut.io.sources import RowSource, find_files, tree_bytes
from streamcut.io.spec import PARTIAL, SHARD_NNZ
from streamcut.io.split import Splitter
from streamcut.io.writer import writer_bytes


_USUAL = {"files", "rows", "lines"}  # counters that say nothing unusual


@dataclass(frozen=True, slots=True)
class ConvertReport:
    """What was written.

    outputs      {path: statistics}
    counters     {what was unusual in the input: how often}, only what occurred
    rows         read by this run; `resumed_rows` were stored by earlier ones
    bytes_in     of the input files, None for standard input and URLs
    rejects      path of the refused lines, None when there are none
    """

    outputs: dict[str, Statistics]
    counters: dict[str, int]
    rows: int
    resumed_rows: int
    bytes_in: int | None
    bytes_out: int
    seconds: float
    plan: ConvertPlan
    rejects: str | None = None
    complete_before: list[str] = field(default_factory=list)


def convert(
    inputs: str | os.PathLike | Sequence[str | os.PathLike],
    output: str | os.PathLike,
    *,
    progress: Callable[[Progress], None] | None = None,
    **options,
) -> ConvertReport:
    """Convert `inputs` (files, directories, globs, stores, "-" for standard input) to the store `output`.

    `options` are the fields of ConvertOptions; `streamcut convert --help` explains them. `progress` is called a few times a
    second. Raises UsageError, NotFoundError, BadInputError, MemoryBudgetError, DiskFullError, LockedError, and CorruptError for
    an input store that is damaged.
    """
    began = time.monotonic()
    settings = ConvertOptions(**options)
    names = [os.fspath(name) for name in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]
    outputs = output_paths(os.fspath(output), settings)
    kind, paths = find_files(names, settings.format)
    settings.require_meaning(kind)
    if settings.resume and "-" in paths:
        raise UsageError("--resume: standard input cannot be read again; save it to a file, or start over with --force")
    _refuse_overlap(outputs, paths)
    readers = open_readers(kind, paths, settings)
    plan = make_plan(
        settings.memory,
        resident_bytes(),
        threads=settings.threads,
        shard_nnz=settings.shard_nnz or SHARD_NNZ,
        shard_fixed=settings.shard_nnz is not None,
        sorting=settings.sorting,
        writers=len(outputs),
        source_bytes=lambda block, threads: source_bytes(kind, readers, block, threads),
        writer_bytes=writer_bytes,
    )
    rejects = RejectsFile(Path(outputs[0] + PARTIAL) / "rejects", Path(outputs[0] + ".rejects"))
    source = open_source(kind, paths, readers, settings, plan, rejects.add)
    record = {**_lasting_options(settings, plan, kind), "inputs": [list(found) for found in source.identity["inputs"]]}
    n_features = 1 << settings.hash_bits if settings.hash_bits else getattr(source, "n_features", settings.n_features)
    with ExitStack() as stack:
        targets = []
        for path in outputs:
            target = Target(
                path,
                record,
                plan,
                backend=settings.backend,
                n_features=n_features,
                resume=settings.resume,
                force=settings.force,
            )
            stack.callback(target.close)
            targets.append(target)
        work = _Work(source, targets, settings, plan, record, rejects, Reporter(progress, source, began))
        stack.callback(rejects.close)
        rejected = work.run()
    sizes = [size for _, size, _ in source.identity["inputs"]]
    return ConvertReport(
        outputs={target.path: target.statistics for target in targets if target.statistics is not None},
        counters={name: count for name, count in targets[0].counters.items() if count and name not in _USUAL},
        rows=work.read,
        resumed_rows=sum(target.stored for target in targets),
        bytes_in=None if None in sizes else sum(sizes),
        bytes_out=sum(tree_bytes(path) for path in outputs),
        seconds=time.monotonic() - began,
        plan=plan,
        rejects=str(rejects.final) if rejected else None,
        complete_before=[target.path for target in targets if target.complete],
    )


def output_paths(output: str, settings: ConvertOptions) -> list[str]:
    """[OUTPUT] or, with a split, [OUTPUT, the rest]: `data.zarr` and `data-test.zarr` unless --split-output says otherwise.

    Raises UsageError and NotFoundError before anything is read.
    """
    outputs = [output.rstrip("/") or output]
    if settings.split is not None:
        stem, suffix = os.path.splitext(outputs[0])
        rest = f"{stem}-test{suffix}" if settings.split_output is None else os.fspath(settings.split_output).rstrip("/")
        if os.path.realpath(rest) == os.path.realpath(outputs[0]):
            raise UsageError(f"--split-output: {rest} is the output itself")
        outputs.append(rest)
    for path in outputs:
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise NotFoundError(f"{path}: its directory does not exist; create it first")
        if os.path.lexists(path) and not settings.force and not settings.resume:
            raise UsageError(f"{path}: exists; choose another name, or replace it with --force")
    return outputs


def _refuse_overlap(outputs: list[str], paths: list[str]) -> None:
    """An output inside an input would be read as input; an input inside an output would be replaced by it."""
    local = [path for path in paths if path != "-" and "://" not in path]
    for output in outputs:
        for path in local:
            first, second = os.path.realpath(output), os.path.realpath(path)
            if os.path.commonpath([first, second]) in (first, second):
                raise UsageError(f"{output}: lies inside the input {path}, or holds it; choose another place")


def _lasting_options(settings: ConvertOptions, plan: ConvertPlan, kind: str) -> dict:
    """The options that decide what the store holds: a conversion resumes only with the same."""
    passing = {"memory", "threads", "scratch", "resume", "force", "split_output", "backend"}
    kept = {name: value for name, value in asdict(settings).items() if name not in passing and value is not None}
    return {**kept, "format": kind, "shard_nnz": plan.shard_nnz}


def _scratch(output: str, settings: ConvertOptions) -> Path:
    """Where runs go: inside OUTPUT.partial, whose lock we hold, or in --scratch under a name of its own for each output."""
    if settings.scratch is None:
        return Path(output + PARTIAL) / "scratch"
    folder = Path(settings.scratch)
    if not folder.is_dir():
        raise NotFoundError(f"--scratch: {folder} is not a directory")
    digest = hashlib.sha256(os.path.realpath(output).encode()).hexdigest()[:12]
    return folder / f"{Path(output).name}.{digest}.scratch"


class _Work:
    """One run from the source to the targets; `read` counts rows."""

    def __init__(
        self,
        source: RowSource,
        targets: list[Target],
        settings: ConvertOptions,
        plan: ConvertPlan,
        record: dict,
        rejects: RejectsFile,
        report: Reporter,
    ) -> None:
        self.source, self.targets, self.settings, self.plan = source, targets, settings, plan
        self.record, self.rejects, self.report = record, rejects, report
        self.splitter = Splitter(settings.split, settings.split_seed)
        self.read = 0

    def run(self) -> bool:
        """Do all that is left to do; whether lines were refused."""
        if all(target.complete for target in self.targets):
            return self.rejects.final.exists()
        if self.settings.sorting:
            self._sorted()
        else:
            self._as_they_come()
        rejected = self.settings.on_error == "skip" and self._publish_rejects()
        for target in self.targets:
            target.finish(self.record, dict(self.source.counters))
        return rejected

    def _as_they_come(self) -> None:
        start = self._start()
        if start is not None:
            for target, seen in zip(self.targets, start["seen"], strict=True):
                target.seen = seen
        for chunk, place in self._blocks(start):
            position = {
                "source": place,
                "read": chunk.first_row,
                "seen": [target.seen for target in self.targets],
                "has_qid": chunk.qid is not None,
                "rejects": self.rejects.length(place["counters"]["skipped_lines"]) if self.settings.on_error == "skip" else 0,
            }
            for target, (part,) in zip(self.targets, self.splitter.parts(chunk), strict=True):
                target.give(part, position)

    def _start(self) -> dict | None:
        """The earliest position from which an output still lacks rows; None: the beginning."""
        positions = [target.resumed_at for target in self.targets if not target.complete]
        if None in positions or any(position["has_qid"] for position in positions):
            return None
        return min(positions, key=lambda position: position["read"])

    def _sorted(self) -> None:
        shares = [1.0]
        if self.settings.split is not None:
            first = min(max(self.settings.split, 0.25), 0.75)
            shares = [first, 1 - first]
        with ExitStack() as stack:
            sorts = [
                stack.enter_context(ExternalSort(_scratch(target.path, self.settings), int(share * self.plan.sort_bytes)))
                for target, share in zip(self.targets, shares, strict=True)
            ]
            for chunk, _ in self._blocks(None):
                for sort, part in zip(sorts, self.splitter.parts(chunk, self._keys(chunk)), strict=True):
                    sort.add(*part)
            for target, sort in zip(self.targets, sorts, strict=True):
                for chunk in sort.sorted():
                    target.give(chunk, {})
                    self.report.writing(target.seen, sort.rows)
                sort.close()
                target.finish(self.record, dict(self.source.counters))

    def _keys(self, chunk: Chunk) -> np.ndarray:
        """What the rows are sorted by: a random number of their own or of their group, or the qid itself."""
        if self.settings.group_by_qid and chunk.qid is None:
            raise BadInputError("--group-by-qid: the rows have no qid")
        if self.settings.shuffle is None:
            return chunk.qid.astype(np.uint64)
        numbers = chunk.first_row + np.arange(chunk.n_rows) if chunk.qid is None else chunk.qid
        return random_keys(self.settings.shuffle, numbers)

    def _blocks(self, start: dict | None):
        if self.settings.on_error == "skip":
            done = (0, 0) if start is None else (start["source"]["counters"]["skipped_lines"], start["rejects"])
            self.rejects.begin(*done)
        for chunk, place in self.source.blocks(None if start is None else start["source"]):
            yield chunk, place
            self.read += chunk.n_rows
            self.report.reading(self.read, place)
        if self.read == 0:
            raise BadInputError("no rows in the input")

    def _publish_rejects(self) -> bool:
        self.rejects.close()
        return self.rejects.publish()
