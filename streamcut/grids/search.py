"""Models for every point of a grid, each measured on rows that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, pstdev
from typing import Any

from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.data.by_data import for_data
from streamcut.errors import UsageError
from streamcut.evaluation import Evaluation, evaluate, measure_to_choose, merit
from streamcut.foundation.shown import Shown
from streamcut.foundation.systems import peak_bytes
from streamcut.foundation.units import part_of, plain
from streamcut.grids.together import PROBLEMS, GridProblem, GridTraining
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import Folds, fold_views
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.job import PathJob
from streamcut.jobs.linear import threads_wanted
from streamcut.loss_table import LOG_ODDS
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.solvers.progress import Observer
from streamcut.strategy import choose, is_scaled
from streamcut.training import Session, checked, job_class, train

_DECIDED = ("task", "loss", "positive_label")  # options that follow from all rows
_MEASURED_ROW = 64  # bytes: scores kept and sorted, weights
Splits = list[tuple[Dataset, Dataset]]  # for each fold: training rows, evaluation rows


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one point. `measures` are those of streamcut.evaluate on rows that it was not trained on.

    measure, value  the one used for model selection
    l1       λ, of linear models; nonzero: how many of their weights are not 0
    """

    C: float
    passes: int
    seconds: float
    result: dict[str, Any]
    measures: dict[str, Any]
    measure: str
    value: float
    l1: float | None = None
    nonzero: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """A point of the grid: its options, the values of `measure` (one per fold), and their cost."""

    options: dict[str, Any]
    measure: str
    values: list[float]
    passes: int
    seconds: float

    def shown(self) -> dict[str, object]:
        return self.as_dict()

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def merit(self) -> float:
        """The mean, negated where the least is best."""
        return merit(self.measure, self.mean)

    def as_dict(self) -> dict[str, object]:
        """A line of a table: the options, mean and standard deviation of the measure, passes and seconds of all trainings."""
        spread = {"deviation": pstdev(self.values)} if len(self.values) > 1 else {}
        return {**self.options, self.measure: self.mean, **spread, "passes": self.passes, "seconds": self.seconds}


@dataclass(eq=False)
class Search:
    """Trains on `data` for each of `Cs` with each of the `others` (points of a grid), and keeps the results.

    options    those of `train` common to all; measure, on_model, on_trained, checkpoint, stop: those of `tune`
    cells      results by option values
    table      a line for each measured model
    models     by option values: those trained on all rows, without validation data; with it, only the best so far
    resources  readings of all trainings (streamcut.execution.feed.Readings), as multiples of all rows; for models trained
               together also bytes_read, groups, peak
    """

    data: Dataset
    Cs: Sequence[float]
    others: Sequence[dict[str, Any]]
    options: dict[str, Any]
    measure: str | None = None
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None
    on_iteration: Observer | None = None
    checkpoint: CheckpointOptions | None = None
    stop: Callable[[], bool] | None = None
    cells: dict[tuple[object, ...], Cell] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)
    models: dict[tuple[object, ...], Model] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=lambda: {"readings": 0.0})

    def __post_init__(self) -> None:
        self.options = {name: plain(value) for name, value in self.options.items()}
        candidates = [
            for_data(checked({**self.options, **point, "C": C})[0], self.data) for point in self.others for C in self.Cs
        ]
        self._points = list(zip(self.others, candidates[:: len(self.Cs)], strict=True))
        self.chosen, self.Cs = (chosen := candidates[0]), [candidate.C for candidate in candidates[: len(self.Cs)]]
        if len({candidate.record.family for candidate in candidates}) > 1:
            raise UsageError("grid: linear and kernel models are tuned separately")
        probable = all(candidate.chosen_loss in LOG_ODDS for candidate in candidates)
        self._measure = measure_to_choose("binary" if chosen.task == "auto" else chosen.task, self.measure, probable)
        self._goes_on = chosen.record.family == "linear" and all(
            issubclass(job_class(candidate), PathJob) for candidate in candidates
        )
        self._over_l1 = self._goes_on and len(self.Cs) == 1 and tuple(self.others[0]) in (("l1",), ("l1_only",))
        self._columns = all(_is_column(candidate) for candidate in candidates)
        statistics = self.data.manifest.statistics  # flights, a free intercept: 0.9 s by Newton's method, as columns 3.4
        alone = [
            (candidate.free or not is_scaled(candidate, statistics)) and choose(candidate, statistics).record.curved
            for candidate in candidates
        ]
        self._columns = self._columns and not (all(alone) and not chosen.distributed)

    def on_validation(self, validation: Dataset) -> None:
        """Train on all rows, measure on `validation`. A stop keeps the best so far."""
        if self._columns and len(self.others) * len(self.Cs) > 1 and not self._over_l1:
            self._together(None, lambda models: [evaluate(model, validation) for model, _ in models])
        else:
            self._each([(self.data, validation)])

    def on_folds(self, folds: Folds, *, everything: bool) -> None:
        """Train on all folds but one, measure on that, for each fold; with `everything` also models of all rows, if the same
        passes can train them."""
        if self._columns and self.chosen.scale == "none":  # else each fold has its own scale
            self._together(folds, None, everything=everything)
        else:
            self._require_threads()
            self._each(list(fold_views(self.data, folds, threads_wanted(self.chosen))))
            self.resources["readings"] += 1.0

    def on_splits(self, splits: Splits) -> None:
        """Train on the first of each pair and measure on the second, pair by pair; drawing each took a pass."""
        self._require_threads()
        self._each(splits)
        self.resources["readings"] += float(len(splits))

    def _require_threads(self) -> None:
        if self.chosen.distributed:
            raise UsageError(
                "folds: such a cross-validation runs on threads only; on Dask, folds are columns of one training by bundle-dca: "
                "two classes, numbers, several classes, without --scale"
            )

    @property
    def best(self) -> Cell:
        """The cell with the best mean, the first among equals."""
        return max(self.cells.values(), key=lambda cell: cell.merit)

    def _each(self, splits: Splits) -> None:
        if self.checkpoint is not None and not self._goes_on:
            raise UsageError(
                f"checkpoint: {self.chosen.chosen_solver} is tuned without checkpoints; leave it out, or see `train`"
            )
        for fold, (rows, held_out) in enumerate(splits):
            for point, steps in self._paths():
                if self._goes_on:
                    self._along(rows, held_out, point, steps, fold)
                else:
                    self._one_by_one(rows, held_out, point, fold)
                if self._stopped(rows):
                    return

    def _paths(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """The options that stay the same along a path, and its steps: from the smallest C up, or, of one C, from the largest λ
        down, where weights become nonzero one by one."""
        if not self._over_l1:
            yield from ((point, [{"C": C} for C in self.Cs]) for point in self.others)
            return
        ((name, _),) = self.others[0].items()
        values = sorted((point[name] for point in self.others), key=lambda l1: part_of(l1) or float(l1), reverse=True)
        yield {}, [{"C": self.Cs[0], name: l1} for l1 in values]

    def _together(
        self, folds: Folds | None, measure: Callable[[Sequence[tuple[Model, int]]], list[Evaluation]] | None, *,
        everything: bool = True,
    ) -> None:  # fmt: skip
        """Train all models at once; those of a fold are measured on its held-out rows, others by `measure`."""
        together = GridTraining(
            self.data,
            self.chosen.memory,
            folds,
            self.on_iteration,
            self.on_trained,
            self.checkpoint,
            self.stop or (lambda: False),
        )
        left_out = [None] if folds is None else [*range(folds.count), *[None] * everything]
        problems = [
            GridProblem(
                fold, point, tuple(self.Cs), {**self.options, **point, **{name: getattr(decided, name) for name in _DECIDED}}
            )
            for fold in left_out
            for point, decided in self._points
        ]
        results = list(zip(problems, together.train(problems), strict=True))
        models = [(problem, C, model) for problem, trained in results for C, model in zip(problem.Cs, trained, strict=True)]
        to_measure = [entry for entry in models if folds is None or entry[0].fold is not None]
        evaluations = (measure or together.measure)([(model, problem.fold or 0) for problem, _, model in to_measure])
        for (problem, C, model), evaluation in zip(to_measure, evaluations, strict=True):
            self._keep({"C": C, **problem.point}, problem.fold or 0, _tried(C, model, evaluation, self._measure))
        self.models |= {(C, *problem.point.values()): model for problem, C, model in models if problem.fold is None}  # all rows
        self.resources |= {"bytes_read": together.bytes_read, "groups": together.groups, "peak": peak_bytes()}
        self.resources["readings"] += together.readings

    def _along(
        self, rows: Dataset, held_out: Dataset, point: dict[str, Any], steps: list[dict[str, Any]], fold: int
    ) -> None:  # fmt: skip
        """Train for one of `steps` after another with the options of `point`, each from where the last ended."""
        checkpoint = self.checkpoint
        if checkpoint is not None:
            name = ",".join([f"fold={fold}", *(f"{key}={value}" for key, value in point.items())])
            checkpoint = replace(checkpoint, directory=below(checkpoint.directory, name))
        chosen, scheduler = checked({**self.options, **point, **steps[0]})
        more = (("validation", _measuring_bytes(held_out)),)
        *_, changing = steps[0]
        with Session(rows, chosen, scheduler=scheduler, stop=self.stop, more=more) as run:
            assert isinstance(run.job, PathJob)
            trainer = run.job.trainer(run.runner, run.plan)
            for step in steps:
                record = run.progress(self.on_iteration)
                if checkpoint is not None:
                    value = step[changing] if isinstance(step[changing], str) else f"{step[changing]:.17g}"
                    folder = replace(checkpoint, directory=below(checkpoint.directory, f"{changing}={value}"))
                    record.checkpoints = run.checkpoints(folder, **step, path=[values[changing] for values in steps])
                l1 = step[changing] if changing != "C" else None
                model = run.finished(partial(trainer.train, step["C"], record, l1=l1, keep=checkpoint is not None))
                tried = _tried(step["C"], model, evaluate(model, held_out), self._measure)
                self._take(rows, {**step, **point}, fold, model, tried)
                if self._stopped(rows):
                    break
            self.resources["readings"] += self._part(rows) * run.readings.value

    def _one_by_one(self, rows: Dataset, held_out: Dataset, point: dict[str, Any], fold: int) -> None:
        """Train all values of C with the options of `point`, each from scratch."""
        for C in self.Cs:
            model = train(rows, **self.options, **point, C=C, on_iteration=self.on_iteration, stop=self.stop)
            self.resources["readings"] += self._part(rows) * model.resources["readings"]
            self._take(rows, {"C": C, **point}, fold, model, _tried(C, model, evaluate(model, held_out), self._measure))
            if self._stopped(rows):
                return

    def _stopped(self, rows: Dataset) -> bool:
        """Whether a search on all rows ends here; one without all of its folds has no result, and raises KeyboardInterrupt."""
        stopped = self.stop is not None and self.stop()
        if stopped and rows is not self.data:
            raise KeyboardInterrupt("tuning was stopped")
        return stopped

    def _part(self, rows: Dataset) -> float:
        return rows.manifest.statistics.n_rows / self.data.manifest.statistics.n_rows

    def _take(self, rows: Dataset, point: dict[str, Any], fold: int, model: Model, tried: Tried) -> None:
        """Keep a result, and the model if it is the best of all rows."""
        best = max((cell.merit for cell in self.cells.values()), default=-math.inf)
        self._keep(point, fold, tried)
        if rows is self.data and merit(self._measure, tried.value) > best:
            self.models = {tuple(point.values()): model}

    def _keep(self, point: dict[str, Any], fold: int, tried: Tried) -> None:
        place = tuple(point.values())
        before = self.cells.get(place, Cell(point, self._measure, [], 0, 0.0))
        self.cells[place] = Cell(
            point, self._measure, [*before.values, tried.value], before.passes + tried.passes, before.seconds + tried.seconds
        )
        cost = {"passes": tried.passes, "seconds": tried.seconds}
        self.table.append({**point, "fold": fold, **tried.measures, **tried.result, **cost})
        if self.on_model is not None:
            self.on_model(point, fold, tried)


def _is_column(options: TrainOptions) -> bool:
    """Whether it is trained as columns, in the same passes as others that differ in C, λ and fold."""
    alone = options.record.dual and not options.maps
    return alone and options.kind in PROBLEMS and options.warm_start is None and options.target is None


def _tried(C: float, model: Model, evaluation: Evaluation, measure: str) -> Tried:
    """The result of a training. Raises UsageError where the measure is undefined."""
    last, described, measures = model.history[-1] if model.history else {}, model.describe(), evaluation.measures()
    passes, seconds = int(last.get("passes", last.get("epoch", 0))), float(last.get("seconds", 0.0))
    return Tried(
        C, passes, seconds, model.result(), measures, measure, _measured(measures, measure), described.get("l1"),
        described.get("n_nonzero_weights"),
    )  # fmt: skip


def _measured(measures: dict[str, Any], name: str) -> float:
    """The measure `name`. Raises UsageError where it is undefined or not available for the model."""
    if name not in measures:
        having = [other for other, value in measures.items() if isinstance(value, float)]
        raise UsageError(f"measure: there is no {name} for such a model, only {', '.join(having)}")
    if measures[name] is None:
        raise UsageError(
            f"measure: {name} is not defined on the validation data (are all its labels the same?); choose another one"
        )
    return float(measures[name])


def _measuring_bytes(data: Dataset) -> int:
    """Memory needed to measure on `data`."""
    reading = 0 if isinstance(data, MemoryDataset) else buffer_bytes(data.manifest)
    return reading + _MEASURED_ROW * data.manifest.statistics.n_rows
