"""Choosing parameters: a grid of C and, for kernels, γ, the budget and ν, on validation data or by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from streamcut.config import LIMITS, RESOURCES, WATCHERS, CheckpointOptions, TrainOptions
from streamcut.errors import UsageError
from streamcut.foundation.shown import Shown
from streamcut.foundation.units import plain
from streamcut.grids.search import Cell, Search
from streamcut.grids.selection import Tried
from streamcut.io.row_view import folds_of
from streamcut.models.checkpoint_places import below
from streamcut.models.model import Model
from streamcut.solvers.progress import Observer
from streamcut.training import measurable, opened, stored, train, without_data

_FIRST = ("C", "l1", "gamma", "budget", "nu")  # the order of options in tables; others follow as they are given
_NO_GRID = {*RESOURCES, *LIMITS, *WATCHERS, "task", "warm_start"}
GRID = tuple(name for name in TrainOptions.__dataclass_fields__ if name not in _NO_GRID)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuned(Shown):
    """`model` has the options of `best`, the cell with the best mean (of equals the first that was tried).

    table       a line for each model that was measured: its options, fold (from 0), all measures, what its certificate says,
                passes and seconds; pandas.DataFrame(found.table) is a frame of them
    resources   readings: how often rows were read for all trainings, to draw folds and to measure models together; of
                models that were trained together also bytes_read (decoded from storage, by all of that), the number of groups
                they had, peak (resident bytes of the process)
    """

    model: Model
    best: Cell
    cells: list[Cell]
    table: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        best = self.best
        return {**best.options, best.measure: best.mean, "tried": len(self.cells), "model": type(self.model).__name__}


def tune(
    data: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    validation: Any = None,
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

    grid        {"C": values, "l1": values, "loss": names, "positive_weight": values, …}: any options of `train` that decide what
                comes out, but the task and warm_start
    label, convert   of raw data: the column with the labels, and more options of `streamcut.convert`, as `train` takes them
    validation  data that all models are measured on, as `evaluate` takes them; the best of them comes out
    folds       instead: K-fold cross-validation on rows drawn at random; the best options are then trained with on everything
    fold_seed   random seed of the folds, which depend on it and the rows' numbers alone, not on how they are stored
    groups      "qid": rows of one qid are in one fold, where the data has any; None: every row is drawn by itself
    measure     the greatest such measure of streamcut.evaluate is the best, the least where it is a loss or an error; None: the
                first that models of the task have
    on_model    called with (options of the point, fold from 0, what came out); on_trained: with (options, fold, model) before
                models are measured, where they are trained together; the fold of all rows is None
    checkpoint  linear solvers: a folder for checkpoints, or a CheckpointOptions, which also resumes; it is for the caller to
                remove once all is done

    Models of linear solvers are trained together on threads: each pass through the data serves all folds and values of l1 (and of
    C, where they don't go on from each other). They go from one C to the next where they can (`train_path`), those of all rows,
    too, which the answer is chosen from. What each of them computes is what it would alone on the same rows with one worker. Only
    where memory is too little for a row cache of each, those of bundle-dca share one, with fewer cuts: models are then other ones
    within the same tolerance, with certificates of their own, and the same ones each time as long as memory is the same.
    All else is trained anew, one after the other. The other arguments, and what is raised, are those of `train`; UsageError also
    for fewer rows than folds, KeyboardInterrupt when `stop` says so.

    >>> found = tune("rows.zarr", {"C": [0.1, 10.0]}, validation="rows.zarr")  # made in the example of `convert`
    >>> len(found.cells), found.best.measure
    (2, 'accuracy')
    """
    if (validation is None) == (folds is None):
        raise UsageError("tune: give validation data or a number of folds, one of them")
    if unknown := sorted(set(grid) - set(GRID)) or not grid:
        what = ", ".join(unknown) if isinstance(unknown, list) else "nothing"
        raise UsageError(f"grid: takes options of `train` that decide what comes out ({', '.join(GRID)}), not {what}")
    names = sorted(grid, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    points = {name: _values(name, grid[name]) for name in names}
    if twice := sorted(set(points) & set(options)):
        raise UsageError(f"{', '.join(twice)}: in the grid already")
    how = options.get("scratch"), options.get("memory", "auto")
    with ExitStack() as held:
        place, temporary = held.enter_context(stored(data, label, convert, *how))
        whole = opened(place)
        Cs = points.pop("C", [1.0] if "C" not in options else [options.pop("C")])
        others = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
        if isinstance(checkpoint, str):
            checkpoint = CheckpointOptions(checkpoint)
        hooks: dict[str, Any] = {"on_iteration": on_iteration, "checkpoint": checkpoint, "stop": stop}
        search = Search(whole, Cs, others, options, measure, on_model=on_model, on_trained=on_trained, **hooks)
        if validation is not None:
            search.on_validation(opened(held.enter_context(measurable(validation, whole.recipe, *how))))
        else:
            search.on_folds(folds_of(whole, folds, fold_seed, groups), everything=True)
        best = max(search.cells.values(), key=lambda cell: cell.merit)  # of equals the first
        model = search.models.get(tuple(best.options.values()))
        if model is None:
            if checkpoint is not None:
                hooks["checkpoint"] = replace(checkpoint, directory=below(checkpoint.directory, "best"))
            model = train(whole, **options, **best.options, **hooks)
            search.resources["readings"] += model.resources["readings"]
            if "bytes_read" in search.resources:
                search.resources["bytes_read"] += model.history[-1]["bytes_read"]
        return Tuned(
            without_data(model) if temporary else model, best, list(search.cells.values()), search.table, search.resources
        )


def _values(name: str, values: Sequence[Any]) -> list[Any]:
    """Numbers from the smallest on, whole ones as such where the option is one; words in their order."""
    values = values if isinstance(values, str) else [plain(value) for value in values]
    if isinstance(values, str) or not values or len(set(values)) < len(values):
        raise UsageError(f"{name}: give one value or more, every one once")
    if any(isinstance(value, str) for value in values):
        return list(values)
    whole = TrainOptions.__dataclass_fields__[name].type.startswith("int") and all(value == int(value) for value in values)
    return sorted(int(value) if whole else float(value) for value in values)
