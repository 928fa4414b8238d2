"""Choosing parameters: a grid of C and, for kernels, γ, the budget and ν, on validation data or by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean, pstdev
from typing import Any

from streamcut.by_data import for_data
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import UsageError
from streamcut.evaluation import evaluate, measure_to_choose
from streamcut.io.dataset import Dataset
from streamcut.io.row_view import RowView, fold_views, folds_of
from streamcut.jobs.linear import threads_wanted
from streamcut.models.model import Model
from streamcut.selection import Tried, measured, train_path, tried_model
from streamcut.solvers.progress import Observer
from streamcut.together import Problem, Together, decoded_bytes
from streamcut.training import checked, job_class, opened, train

GRID = ("C", "l1", "gamma", "budget", "nu")


@dataclass(frozen=True, slots=True)
class Cell:
    """A point of the grid: its options, the values of `measure` (one for each fold), and what it took to get them."""

    options: dict[str, Any]
    measure: str
    values: list[float]
    passes: int
    seconds: float

    @property
    def mean(self) -> float:
        return fmean(self.values)

    def as_dict(self) -> dict[str, Any]:
        """A line of a table: the options, mean and standard deviation of the measure, passes and seconds of all trainings."""
        spread = {"deviation": pstdev(self.values)} if len(self.values) > 1 else {}
        return {**self.options, self.measure: self.mean, **spread, "passes": self.passes, "seconds": self.seconds}


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """`model` has the options of `best`, the cell with the greatest mean (of equals the first that was tried).

    table       a line for each model that was measured: its options, fold (from 0), all measures, what its certificate says,
                passes and seconds; pandas.DataFrame(found.table) is a frame of them
    bytes_read  decoded from storage, where models were trained together; 0 elsewhere
    """

    model: Model
    best: Cell
    cells: list[Cell]
    table: list[dict[str, Any]] = field(default_factory=list)
    bytes_read: int = 0


def tune(
    data: str | os.PathLike | Dataset,
    grid: Mapping[str, Sequence[float]],
    *,
    validation: str | os.PathLike | Dataset | None = None,
    folds: int | None = None,
    fold_seed: int = 0,
    groups: str | None = "qid",
    measure: str | None = None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None,
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Tuned:
    """Train a model for every point of `grid` and return the best.

    grid        {"C": values, "l1": values, "gamma": values, "budget": values, "nu": values}, any of them
    validation  data that all models are measured on; the best of them comes out
    folds       instead: K-fold cross-validation on rows drawn at random; the best options are then trained with on everything
    fold_seed   random seed of the folds, which depend on it and the rows' numbers alone, not on how they are stored
    groups      "qid": rows of one qid are in one fold, where the data has any; None: every row is drawn by itself
    measure     the greatest such measure of streamcut.evaluate is the best; None: the first that models of the task have
    on_model    called with (options of the point, fold from 0, what came out); on_trained: with (options, fold, model) before
                models are measured, where they are trained together; the fold of all rows is None
    checkpoint  linear solvers: a folder for checkpoints, or a CheckpointOptions, which also resumes; it is for the caller to
                remove once all is done

    Models of linear solvers are trained together on threads: each pass through the data serves all folds and values of l1 (and of
    C, where they don't go on from each other). They go from one C to the next where they can (`train_path`), those of all rows,
    too, which the answer is chosen from. What each of them computes is what it would alone on the same rows with one worker.
    All else is trained anew, one after the other. The other arguments, and what is raised, are those of `train`; UsageError also
    for fewer rows than folds, KeyboardInterrupt when `stop` says so.

    >>> found = tune("rows.zarr", {"C": [0.1, 10.0]}, validation="rows.zarr")  # made in the example of `convert`
    >>> len(found.cells), found.best.measure
    (2, 'accuracy')
    """
    if (validation is None) == (folds is None):
        raise UsageError("tune: give validation data or a number of folds, one of them")
    points = {name: _values(name, grid[name]) for name in GRID if name in grid}
    if len(points) != len(grid) or not points:
        raise UsageError(f"grid: takes {', '.join(GRID)}, not {', '.join(sorted(set(grid) - set(GRID))) or 'nothing'}")
    if twice := sorted(set(points) & set(options)):
        raise UsageError(f"{', '.join(twice)}: in the grid already")
    whole = opened(data)
    Cs = points.pop("C", [1.0] if "C" not in options else [options.pop("C")])
    others = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
    chosen, *_ = [for_data(checked({**options, **point, "C": C})[0], whole) for point in others for C in Cs]
    linear, goes_on = chosen.record.family == "linear", hasattr(job_class(chosen), "trainer")
    splits: list[tuple[Dataset, Dataset]]
    if validation is not None:
        splits, read = [(whole, opened(validation))], 0
    else:
        if chosen.distributed:
            raise UsageError("folds: cross-validation runs on threads only, not on Dask")
        splits = list(fold_views(whole, folds_of(whole, folds, fold_seed, groups), threads_wanted(chosen)))
        read = decoded_bytes(whole.manifest)
    search = _Search(measure, chosen, on_model)
    paths = [tuple(Cs)] if linear and goes_on else [(C,) for C in Cs]
    if linear and not chosen.distributed and len(splits) * len(others) * len(paths) > 1:
        if isinstance(checkpoint, str):
            checkpoint = CheckpointOptions(checkpoint)
        hooks: dict[str, Any] = {"on_iteration": on_iteration, "on_trained": on_trained, "checkpoint": checkpoint}
        common = {**options, "task": chosen.task, "positive_label": chosen.positive_label}
        together = Together(whole, threads_wanted(chosen), chosen.memory, stop=stop or (lambda: False), bytes_read=read, **hooks)
        problems = [
            Problem(fold, point, path, None if rows is whole else rows, {**common, **point})
            for fold, rows in [*enumerate(rows for rows, _ in splits), *[(None, whole)] * (folds is not None and goes_on)]
            for point in others
            for path in paths
        ]
        search.together(together, problems, [held_out for _, held_out in splits])
        read = together.bytes_read
    else:
        if checkpoint is not None:
            raise UsageError("checkpoint: only linear models that are trained together have checkpoints; see `streamcut.train`")
        for fold, (rows, held_out) in enumerate(splits):
            for point in others:
                given = {**options, **point, "on_iteration": on_iteration, "stop": stop}
                search.one_by_one(rows, held_out, Cs, point, given, fold, path=linear and goes_on)
    best = max(search.cells.values(), key=lambda cell: cell.mean)  # of equals the first
    model = search.models.get(tuple(best.options.values()))
    if model is None:
        model = train(whole, **options, **best.options, on_iteration=on_iteration, stop=stop)
    return Tuned(model, best, list(search.cells.values()), search.table, read)


class _Search:
    """Trains and measures: every cell, the table of all models, and by their options those `models` that may be the answer."""

    def __init__(self, measure: str | None, chosen: TrainOptions, on_model: Callable | None) -> None:
        self.cells: dict[tuple[float, ...], Cell] = {}
        self.table: list[dict[str, Any]] = []
        self.models: dict[tuple[float, ...], Model] = {}
        self._measure = measure_to_choose("binary" if chosen.task == "auto" else chosen.task, measure)
        self._on_model = on_model

    def together(self, together: Together, problems: list[Problem], held_out: list[Dataset]) -> None:
        """All of the problems at once; those of a fold are measured on the rows that it holds out."""
        found = list(zip(problems, together.train(problems), strict=True))
        models = [(problem, outcome) for problem, outcomes in found for outcome in outcomes]
        to_measure = [(problem, outcome) for problem, outcome in models if problem.fold is not None]
        rows = [(outcome.model, held_out[problem.fold or 0]) for problem, outcome in to_measure]
        for (problem, outcome), evaluation in zip(to_measure, together.measure(rows), strict=True):
            step = {"C": outcome.C}
            tried = tried_model(step, outcome.model, outcome.record, evaluation.measures(), self._measure)
            self._keep({**step, **problem.point}, problem.fold or 0, tried)
        for problem, outcome in models:
            if problem.rows is None:  # all of them
                self.models[(outcome.C, *problem.point.values())] = outcome.model

    def one_by_one(
        self, data: Dataset, held_out: Dataset, Cs: list[float], point: dict[str, Any], options: dict[str, Any], fold: int, *,
        path: bool,
    ) -> None:  # fmt: skip
        """All values of C with these `options`, of which those in the grid are the `point`; along a `path` where there is one."""

        def take(model: Model, tried: Tried) -> None:
            if options["stop"] is not None and options["stop"]():
                raise KeyboardInterrupt("tuning was stopped")
            place = {"C": tried.C, **point}
            best = max((cell.mean for cell in self.cells.values()), default=-float("inf"))
            self._keep(place, fold, tried)
            if not isinstance(data, RowView) and tried.value is not None and tried.value > best:
                self.models = {tuple(place.values()): model}

        if path:
            train_path(data, Cs, validation=held_out, measure=self._measure, on_model=take, **options)
            return
        for C in Cs:
            model = train(data, C=C, **options)
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
        if self._on_model is not None:
            self._on_model(point, fold, tried)


def _values(name: str, values: Sequence[float]) -> list[float]:
    found = sorted(int(value) if name == "budget" and value == int(value) else float(value) for value in values)
    if not found or len(set(found)) < len(found):
        raise UsageError(f"{name}: give one value or more, every one once")
    return found
