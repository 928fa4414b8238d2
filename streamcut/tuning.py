"""Choosing parameters: a grid of C and, for kernels, γ, the budget and ν, on validation data or by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, pstdev
from typing import Any

from streamcut.errors import UsageError
from streamcut.evaluation import evaluate, measure_to_choose
from streamcut.io.dataset import Dataset
from streamcut.io.shard_view import ShardView
from streamcut.models.model import Model
from streamcut.selection import Tried, measured, train_path
from streamcut.solvers.progress import Observer
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
    """`model` has the options of `best`, the cell with the greatest mean (of equals the first that was tried)."""

    model: Model
    best: Cell
    cells: list[Cell]


def tune(
    data: str | os.PathLike | Dataset,
    grid: Mapping[str, Sequence[float]],
    *,
    validation: str | os.PathLike | Dataset | None = None,
    folds: int | None = None,
    measure: str | None = None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None,
    on_iteration: Observer | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Tuned:
    """Train a model for every point of `grid` and return the best.

    grid        {"C": values, "l1": values, "gamma": values, "budget": values, "nu": values}, any of them
    validation  data that all models are measured on; the best of them comes out
    folds       instead: K-fold cross-validation, folds being whole shards; the best options are then trained with again, on
                everything. Folds are trained one after the other and share no passes
    measure     the greatest such measure of streamcut.evaluate is the best; None: the first that models of the task have
    on_model    called with (options of the point, fold from 0, what came out)

    Linear solvers go from one C to the next where they can (`train_path`); all else is trained anew. The other arguments, and
    what is raised, are those of `train`; UsageError also for fewer shards than folds, KeyboardInterrupt when `stop` says so.

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
    splits: Iterator[tuple[Dataset, Dataset]] = iter([(whole, opened(validation))] if validation is not None else ())
    if folds is not None:
        splits = _folds(whole, folds, options)
    Cs = points.pop("C", [1.0] if "C" not in options else [options.pop("C")])
    search = _Search(measure, on_model, {"on_iteration": on_iteration, "stop": stop}, stop or (lambda: False))
    for fold, (part, held_out) in enumerate(splits):
        for others in product(*points.values()):
            search.run(part, held_out, Cs, dict(zip(points, others, strict=True)), options, fold)
    best = max(search.cells.values(), key=lambda cell: cell.mean)  # of equals the first
    model = search.model if folds is None else train(whole, **options, **best.options, **search.hooks)
    assert model is not None
    return Tuned(model, best, list(search.cells.values()))


class _Search:
    """Trains and measures; keeps every cell, and the best single model."""

    def __init__(self, measure: str | None, on_model: Callable | None, hooks: dict[str, Any], stop: Callable[[], bool]) -> None:
        self.cells: dict[tuple[float, ...], Cell] = {}
        self.model: Model | None = None
        self.hooks = hooks
        self._best = -float("inf")
        self._measure, self._on_model, self._stop = measure, on_model, stop

    def run(
        self, data: Dataset, held_out: Dataset, Cs: list[float], others: dict[str, Any], options: dict[str, Any], fold: int
    ) -> None:
        """All values of C with these other options."""

        def take(model: Model, tried: Tried) -> None:
            if self._stop():
                raise KeyboardInterrupt("tuning was stopped")
            self._keep({"C": tried.C, **others}, fold, model, tried)

        chosen, _ = checked({**options, **others, "C": Cs[0]})
        if chosen.record.family == "linear" and hasattr(job_class(chosen), "trainer"):
            train_path(data, Cs, validation=held_out, measure=self._measure, on_model=take, **self.hooks, **others, **options)
            return
        for C in Cs:
            measure = measure_to_choose("binary" if chosen.task == "auto" else chosen.task, self._measure)
            model = train(data, C=C, **others, **options, **self.hooks)
            measures = evaluate(model, held_out).measures()
            last = model.history[-1] if model.history else {}
            passes, seconds = int(last.get("passes", last.get("epoch", 0))), float(last.get("seconds", 0.0))
            take(model, Tried(C, passes, seconds, model.result(), measures, measure, measured(measures, measure)))

    def _keep(self, point: dict[str, Any], fold: int, model: Model, tried: Tried) -> None:
        assert tried.value is not None
        assert tried.measure is not None
        place = tuple(point.values())
        before = self.cells.get(place, Cell(point, tried.measure, [], 0, 0.0))
        self.cells[place] = Cell(
            point, tried.measure, [*before.values, tried.value], before.passes + tried.passes, before.seconds + tried.seconds
        )
        if tried.value > self._best:
            self._best, self.model = tried.value, model
        if self._on_model is not None:
            self._on_model(point, fold, tried)


def _folds(data: Dataset, folds: int, options: Mapping[str, Any]) -> Iterator[tuple[Dataset, Dataset]]:
    """(rows to train on, rows held out): shard i belongs to fold i mod `folds`."""
    shards = range(len(data.manifest.shards))
    if folds < 2 or folds != int(folds):
        raise UsageError(f"folds: {folds!r} is not a whole number, 2 or above")
    if options.get("scheduler", "threads") not in ("threads", "sync"):
        raise UsageError("folds: cross-validation runs on threads only, not on Dask")
    if len(shards) < folds:
        fewer = max(data.manifest.statistics.nnz // (3 * folds), 1)
        raise UsageError(
            f"folds: {folds} folds need as many shards, and the data has {len(shards)}; convert the store to one of smaller "
            f"shards: streamcut convert {data.path or 'DATA'} NEW --shard-nnz {fewer}"
        )
    for fold in range(folds):
        parts = [[i for i in shards if (i % folds == fold) == held_out] for held_out in (False, True)]
        yield ShardView(data, parts[0]), ShardView(data, parts[1])


def _values(name: str, values: Sequence[float]) -> list[float]:
    found = sorted(int(value) if name == "budget" and value == int(value) else float(value) for value in values)
    if not found or len(set(found)) < len(found):
        raise UsageError(f"{name}: give one value or more, every one once")
    return found
