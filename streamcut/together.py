"""Several problems over the same rows, trained together: each pass through the data serves all of them.

A problem is a path: models for one value of C after another on all rows or those of a fold, with options of its own. Each runs as
it would alone, in a thread of its own, and gets its rows from one streamcut.execution.shared_reading. Memory is divided evenly;
where that is too little for row caches, those of bundle-dca with the same options but C share one (streamcut.pooling). Where not
even the least of it is enough for all, they are trained in groups, each of which reads the data anew.
"""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from streamcut.config import CheckpointOptions
from streamcut.errors import MemoryBudgetError
from streamcut.evaluation import Evaluation, evaluate
from streamcut.execution.plan import SLACK
from streamcut.execution.shared_reading import AHEAD, Reader, SharedReading
from streamcut.io.dataset import Dataset, held_bytes, shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import RowView
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.warmed import warm_up
from streamcut.machine import memory_limit
from streamcut.models.checkpoint_places import below
from streamcut.models.model import Model
from streamcut.pooling import divide
from streamcut.selection import along
from streamcut.solvers.progress import Observer, Progress
from streamcut.systems import give_back, peak_bytes, resident_bytes
from streamcut.training import Session, checked, warn_of_peak
from streamcut.units import format_bytes

_SCORED_ROW = 8, 24  # bytes of a row that is measured: its score, and its weight where it has one; twice more while sorted


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Models for each of `Cs` on `rows` (None: all), with `options` of `train`. `fold` (None: of none) and `point` name it."""

    fold: int | None
    point: Mapping[str, Any]
    Cs: tuple[float, ...]
    rows: Dataset | None
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Of the folder of its checkpoints."""
        one = {"C": self.Cs[0]} if len(self.Cs) == 1 else {}
        parts = ["all" if self.fold is None else f"fold={self.fold}"]
        values = {**self.point, **one}.items()
        return ",".join([*parts, *(f"{name}={value if isinstance(value, str) else repr(value)}" for name, value in values)])


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A model for one C of a problem, and the record of its training."""

    C: float
    model: Model
    record: Progress


@dataclass(slots=True)
class Together:
    """Trains and measures on threads, and counts the `bytes_read` (decoded from storage) of all of it.

    workers     threads that run at a time; memory: the option
    on_trained  called with (the options that name a model, its fold, the model) as it comes
    """

    data: Dataset
    workers: int
    memory: str = "auto"
    on_iteration: Observer | None = None
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None
    checkpoint: CheckpointOptions | None = None
    stop: Callable[[], bool] = lambda: False
    bytes_read: int = 0
    groups: int = 0
    _telling: threading.Lock = field(default_factory=threading.Lock)

    def train(self, problems: Sequence[Problem]) -> list[list[Outcome]]:
        """What came out for each C of each problem.

        Raises KeyboardInterrupt at a stop, MemoryBudgetError when not even one problem fits into memory, and what `train` does.
        """
        done: list[list[Outcome]] = []
        self.groups, size = 0, len(problems)
        while len(done) < len(problems):
            try:
                done += self._group(problems[len(done) : len(done) + size])
                self.groups += 1
            except MemoryBudgetError:
                left = len(problems) - len(done)
                size = min(size, left)
                if size == 1:
                    raise
                size = min(size - 1, math.ceil(left / (math.ceil(left / size) + 1)))  # one group more, or less in each
            gc.collect()  # sessions hold each other in circles, and their memory
            give_back()
        return done

    def measure(self, models: Sequence[tuple[Model, Dataset]]) -> list[Evaluation]:
        """Each model measured on rows of its own: a RowView of the data, or another data set. One pass for as many as fit."""
        found: list[Evaluation] = []
        sizes = [_scored_bytes(rows) for _, rows in models]
        free = memory_limit(self.memory) - resident_bytes() - self._reading() - SLACK - 2 * self.workers * max(sizes, default=0)
        while len(found) < len(models):
            first = last = len(found)
            while last < len(models) and (last == first or sum(sizes[first : last + 1]) <= free):
                last += 1
            found += self._measured(models[first:last])
        return found

    def _measured(self, models: Sequence[tuple[Model, Dataset]]) -> list[Evaluation]:
        whole = models[0][1]
        data = whole.inner if isinstance(whole, RowView) else whole
        if isinstance(data, MemoryDataset):  # nothing is read
            return [evaluate(model, rows) for model, rows in models]
        shared = SharedReading(data, self.workers)
        readers = [Reader(shared) for _ in models]
        works = [partial(_evaluated, model, _seen(reader, rows)) for reader, (model, rows) in zip(readers, models, strict=True)]
        found = shared.run(list(zip(readers, works, strict=True)))
        self.bytes_read += shared.bytes_read
        return found

    def _group(self, problems: Sequence[Problem]) -> list[list[Outcome]]:
        before = peak_bytes()
        shared = SharedReading(self.data, self.workers)
        readers = [Reader(shared) for _ in problems]

        def stop() -> bool:
            return shared.failed or self.stop()

        def session(problem: Problem, reader: Reader) -> Session:
            chosen, scheduler = checked({**problem.options, "C": problem.Cs[0], "workers": 1})
            return Session(_seen(reader, problem.rows), chosen, scheduler=scheduler, stop=stop)

        pairs = list(zip(problems, readers, strict=True))
        try:
            sessions = shared.run([(reader, partial(session, problem, reader)) for problem, reader in pairs])
            with ExitStack() as held:
                shared.pin(self._planned(sessions, problems, readers, held))
                works = [partial(self._path, run, problem) for run, problem in zip(sessions, problems, strict=True)]
                found = shared.run(list(zip(readers, works, strict=True)))
        finally:
            self.bytes_read += shared.bytes_read
        if self.stop():
            raise KeyboardInterrupt("training was stopped")
        warn_of_peak(memory_limit(self.memory), peak_bytes(), before)
        return found

    def _planned(
        self, sessions: list[Session], problems: Sequence[Problem], readers: Sequence[Reader], held: ExitStack
    ) -> frozenset[int]:
        """Enter the sessions, each with its share of the memory; returns the shards that what is left can keep."""
        warm_up(sessions[0].job, sessions[0].dataset.manifest)
        limit = memory_limit(self.memory)
        besides = resident_bytes() + self._reading() + SLACK
        for run, problem in zip(sessions, problems, strict=True):
            weights = run.job.needs(run.dataset.manifest).weights
            run.more = (("models", 8 * weights * len(problem.Cs) * (2 if problem.rows is None else 1)),)
        groups = [[(sessions[i], readers[i]) for i in numbers] for numbers in _by_point(problems)]
        besides += divide(groups, limit - besides, self.workers)
        for run in sessions:
            try:
                held.enter_context(run)
            except MemoryBudgetError as error:
                raise MemoryBudgetError(
                    f"--memory {format_bytes(limit)}: {format_bytes(besides)} of it are for the process and for reading, the "
                    f"rest for {len(sessions)} trainings at once. {error}"
                ) from None
        free, pinned = limit - besides - sum(run.plan.needed for run in sessions), []
        for shard, info in enumerate(self.data.manifest.shards):
            size = shard_bytes(self.data.manifest, info)
            if size <= free:
                pinned.append(shard)
                free -= size
        return frozenset(pinned)

    def _reading(self) -> int:
        """Bytes of the shards that are decoded at a time, and of the rows of folds that are copied from them."""
        manifest = self.data.manifest
        copies = self.workers * max(shard_bytes(manifest, shard) for shard in manifest.shards)
        decoded = 0 if isinstance(self.data, MemoryDataset) else (1 + AHEAD) * buffer_bytes(manifest)
        return copies + decoded + held_bytes(self.data)

    def _path(self, run: Session, problem: Problem) -> list[Outcome]:
        found = []
        with run.member or nullcontext():
            for C, model, record in self._models(run, problem):
                if problem.rows is not None:
                    model = model.without_proof()  # its bound is in the certificate; nobody goes on from it
                found.append(Outcome(C, model, record))
                if self.on_trained is not None:
                    with self._telling:
                        self.on_trained({"C": C, **problem.point}, problem.fold, model)
        return found

    def _models(self, run: Session, problem: Problem) -> Iterator[tuple[float, Model, Progress]]:
        checkpoint = self.checkpoint
        if checkpoint is not None:
            checkpoint = replace(checkpoint, directory=below(checkpoint.directory, problem.name))
        if hasattr(run.job, "trainer"):
            steps = [{"C": C} for C in problem.Cs]
            for step, model, record in along(run, steps, on_iteration=self._iterated, checkpoint=checkpoint):
                yield step["C"], model, record
            return
        (C,) = problem.Cs
        record = run.progress(self._iterated)
        if checkpoint is not None:
            record.checkpoints = run.checkpoints(checkpoint)
        yield C, run.finished(lambda: run.job.solve(run.runner, record, run.plan)), record

    def _iterated(self, record: Any) -> None:
        if self.on_iteration is not None:
            with self._telling:
                self.on_iteration(record)


def _by_point(problems: Sequence[Problem]) -> list[list[int]]:
    """The numbers of problems that differ in their rows alone; all rows first, then the folds."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for number, problem in sorted(enumerate(problems), key=lambda each: each[1].fold is not None):
        found.setdefault((problem.Cs, *problem.point.items()), []).append(number)
    return list(found.values())


def _evaluated(model: Model, rows: Dataset) -> Evaluation:
    """As `evaluate`, in one of many threads: whose memory is nobody's when they have ended."""
    found = evaluate(model, rows)
    give_back()
    return found


def decoded_bytes(manifest: Manifest) -> int:
    """Of all rows: what a pass through them counts as read."""
    return sum(shard_bytes(manifest, shard) for shard in manifest.shards)


def _scored_bytes(rows: Dataset) -> int:
    """Memory that measuring a model on these rows keeps."""
    statistics = rows.manifest.statistics
    return _SCORED_ROW[statistics.weight_sum is not None] * statistics.n_rows


def _seen(reader: Reader, rows: Dataset | None) -> Dataset:
    """`rows` of the reader's data, by way of it."""
    return rows.over(reader, reader.own_space) if isinstance(rows, RowView) else reader
