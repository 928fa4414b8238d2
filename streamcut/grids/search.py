"""Models for every point of a grid, each measured on rows that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev
from typing import Any

from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.data.by_data import for_data
from streamcut.errors import UsageError
from streamcut.evaluation import Evaluation, evaluate, measure_to_choose, merit
from streamcut.foundation.shown import Shown
from streamcut.foundation.systems import peak_bytes
from streamcut.foundation.units import plain
from streamcut.grids.selection import Tried, measured, train_path, tried_model
from streamcut.grids.together import PROBLEMS, Problem, Together
from streamcut.io.dataset import Dataset
from streamcut.io.row_view import Folds, fold_views
from streamcut.jobs.linear import threads_wanted
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.solvers.progress import Observer
from streamcut.strategy import choose, is_scaled
from streamcut.training import checked, job_class, train

Splits = list[tuple[Dataset, Dataset]]  # for each fold: training rows, evaluation rows


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """A point of the grid: its options, the values of `measure` (one per fold), and their cost."""

    options: dict[str, Any]
    measure: str
    values: list[float]
    passes: int
    seconds: float

    def shown(self) -> dict[str, Any]:
        return self.as_dict()

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def merit(self) -> float:
        """The mean, negated where the least is best."""
        return merit(self.measure, self.mean)

    def as_dict(self) -> dict[str, Any]:
        """A line of a table: the options, mean and standard deviation of the measure, passes and seconds of all trainings."""
        spread = {"deviation": pstdev(self.values)} if len(self.values) > 1 else {}
        return {**self.options, self.measure: self.mean, **spread, "passes": self.passes, "seconds": self.seconds}


def point_text(point: Mapping[str, Any], between: str = ", ") -> str:
    """The options of a point as readable text."""
    return between.join(f"{name} {value if isinstance(value, str) else format(value, 'g')}" for name, value in point.items())


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
    cells: dict[tuple[Any, ...], Cell] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)
    models: dict[tuple[Any, ...], Model] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=lambda: {"readings": 0.0})

    def __post_init__(self) -> None:
        self.options = {name: plain(value) for name, value in self.options.items()}
        found = [for_data(checked({**self.options, **point, "C": C})[0], self.data) for point in self.others for C in self.Cs]
        self.chosen, self.Cs = (chosen := found[0]), [each.C for each in found[: len(self.Cs)]]
        if len({each.record.family for each in found}) > 1:
            raise UsageError("grid: linear and kernel models are tuned separately")
        self._measure = measure_to_choose("binary" if chosen.task == "auto" else chosen.task, self.measure)
        self._linear = chosen.record.family == "linear"
        self._goes_on = self._linear and all(hasattr(job_class(each), "trainer") for each in found)
        self._columns = all(_is_column(each) for each in found)
        statistics = self.data.manifest.statistics  # flights, a free intercept: 0.9 s by Newton's method, as columns 3.4
        alone = [(each.free or not is_scaled(each, statistics)) and choose(each, statistics).record.curved for each in found]
        self._columns = self._columns and not (all(alone) and not chosen.distributed)

    def on_validation(self, validation: Dataset) -> None:
        """Train on all rows, measure on `validation`."""
        if self._columns and len(self.cells_wanted) > 1:
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
                "two classes, numbers, one-vs-rest, without --scale"
            )

    @property
    def cells_wanted(self) -> list[dict[str, Any]]:
        """The options of every point."""
        return [{"C": C, **point} for point in self.others for C in self.Cs]

    def _each(self, splits: Splits) -> None:
        if self.checkpoint is not None and not self._goes_on:
            raise UsageError(
                f"checkpoint: {self.chosen.chosen_solver} is tuned without checkpoints; leave it out, or see `train`"
            )
        for fold, (rows, held_out) in enumerate(splits):
            for point in self.others:
                self._one_by_one(rows, held_out, point, fold)

    def _together(
        self, folds: Folds | None, measure: Callable[[Sequence[tuple[Model, int]]], list[Evaluation]] | None, *,
        everything: bool = True,
    ) -> None:  # fmt: skip
        """Train all models at once; those of a fold are measured on its held-out rows, others by `measure`."""
        chosen = self.chosen
        common = {**self.options, "task": chosen.task, "positive_label": chosen.positive_label}
        hooks: dict[str, Any] = {"on_iteration": self.on_iteration, "on_trained": self.on_trained, "checkpoint": self.checkpoint}
        together = Together(self.data, chosen.memory, folds, stop=self.stop or (lambda: False), **hooks)
        each = [None] if folds is None else [*range(folds.count), *[None] * everything]
        problems = [Problem(fold, point, tuple(self.Cs), {**common, **point}) for fold in each for point in self.others]
        found = list(zip(problems, together.train(problems), strict=True))
        models = [(problem, outcome) for problem, outcomes in found for outcome in outcomes]
        to_measure = [(problem, outcome) for problem, outcome in models if folds is None or problem.fold is not None]
        evaluations = (measure or together.measure)([(outcome.model, problem.fold or 0) for problem, outcome in to_measure])
        for (problem, outcome), evaluation in zip(to_measure, evaluations, strict=True):
            step = {"C": outcome.C}
            tried = tried_model(step, outcome.model, outcome.record, evaluation.measures(), self._measure)
            self._keep({**step, **problem.point}, problem.fold or 0, tried)
        for problem, outcome in models:
            if problem.fold is None:  # all rows
                self.models[(outcome.C, *problem.point.values())] = outcome.model
        self.resources |= {"bytes_read": together.bytes_read, "groups": together.groups, "peak": peak_bytes()}
        self.resources["readings"] += together.readings

    def _one_by_one(self, rows: Dataset, held_out: Dataset, point: dict[str, Any], fold: int) -> None:
        """Train all values of C with the options of `point`, along a path where possible."""

        def take(model: Model, tried: Tried) -> None:
            if self.stop is not None and self.stop():
                raise KeyboardInterrupt("tuning was stopped")
            place = {"C": tried.C, **point}
            best = max((cell.merit for cell in self.cells.values()), default=-float("inf"))
            self._keep(place, fold, tried)
            if rows is self.data and tried.value is not None and merit(self._measure, tried.value) > best:
                self.models = {tuple(place.values()): model}

        given: dict[str, Any] = {**self.options, **point, "on_iteration": self.on_iteration, "stop": self.stop}
        part = rows.manifest.statistics.n_rows / self.data.manifest.statistics.n_rows
        if self._goes_on:
            checkpoint = self.checkpoint
            if checkpoint is not None:
                name = ",".join([f"fold={fold}", *(f"{key}={value}" for key, value in point.items())])
                checkpoint = replace(checkpoint, directory=below(checkpoint.directory, name))
            more: dict[str, Any] = {"measure": self._measure, "on_model": take, "checkpoint": checkpoint}
            best, _ = train_path(rows, self.Cs, validation=held_out, **more, **given)
            self.resources["readings"] += part * best.resources["readings"]
            return
        for C in self.Cs:
            model = train(rows, C=C, **given)
            self.resources["readings"] += part * model.resources["readings"]
            measures = evaluate(model, held_out).measures()
            last = model.history[-1] if model.history else {}
            passes, seconds = int(last.get("passes", last.get("epoch", 0))), float(last.get("seconds", 0.0))
            value = measured(measures, self._measure)
            take(model, Tried(C, passes, seconds, model.result(), measures, self._measure, value))

    def _keep(self, point: dict[str, Any], fold: int, tried: Tried) -> None:
        assert tried.value is not None
        assert tried.measures is not None
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
    return alone and options.problem in PROBLEMS and options.warm_start is None and options.target is None
