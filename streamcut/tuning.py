"""Parameter search: a grid of any options that decide about the model, on validation data or by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from streamcut.config import GRID, CheckpointOptions, TrainOptions
from streamcut.data.datasets import measurable, opened, stored, with_origin
from streamcut.errors import UsageError
from streamcut.foundation.shown import Shown
from streamcut.foundation.units import plain
from streamcut.grids.search import Cell, Search
from streamcut.grids.selection import Tried
from streamcut.io.row_view import folds_of
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.solvers.progress import Observer
from streamcut.training import checked, train

_FIRST = ("C", "l1", "gamma", "budget", "nu")  # the order of options in tables; others follow as given


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuned(Shown):
    """`model` has the options of `best`, the cell with the best mean (the first tried among equals).

    table       a row for each model measured: its options, fold (from 0), all measures, its certificate's figures,
                passes and seconds; pandas.DataFrame(found.table) makes a frame of it
    resources   readings: how often rows were read in total, to train, to draw folds and to measure models; for
                models trained together also bytes_read (decoded from storage, in total), groups (all columns over
                those that memory holds at a time, rounded up), peak (resident bytes of the process)
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
    seed: int = 0,
    group_column: str | None = "qid",
    measure: str | None = None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None,
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Tuned:
    """See streamcut.api."""
    if (validation is None) == (folds is None):
        raise UsageError("tune: give either validation data or a number of folds")
    if unknown := sorted(set(grid) - set(GRID)) or not grid:
        what = ", ".join(unknown) if isinstance(unknown, list) else "nothing"
        raise UsageError(f"grid: takes options of `train` that affect the result ({', '.join(GRID)}), not {what}")
    names = sorted(grid, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    points = {name: _values(name, grid[name]) for name in names}
    if twice := sorted(set(points) & set(options)):
        raise UsageError(f"{', '.join(twice)}: already in the grid")
    how = options.get("scratch"), options.get("memory", "auto")
    with ExitStack() as held:
        place, made_of = held.enter_context(stored(data, label, convert, *how))
        whole = opened(place)
        if (
            seed
            and "seed" not in points
            and checked({**options, **{name: values[0] for name, values in points.items()}})[0].has("seed")
        ):
            options["seed"] = seed
        Cs = points.pop("C", [1.0] if "C" not in options else [options.pop("C")])
        others = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
        if isinstance(checkpoint, str):
            checkpoint = CheckpointOptions(checkpoint)
        hooks: dict[str, Any] = {"on_iteration": on_iteration, "checkpoint": checkpoint, "stop": stop}
        search = Search(whole, Cs, others, options, measure, on_model=on_model, on_trained=on_trained, **hooks)
        if validation is not None:
            search.on_validation(opened(held.enter_context(measurable(validation, whole.recipe, *how))))
        else:
            search.on_folds(folds_of(whole, folds, seed, group_column), everything=True)
        best = max(search.cells.values(), key=lambda cell: cell.merit)  # the first among equals
        model = search.models.get(tuple(best.options.values()))
        if model is None:
            if checkpoint is not None:
                hooks["checkpoint"] = replace(checkpoint, directory=below(checkpoint.directory, "best"))
            model = train(whole, **options, **best.options, **hooks)
            search.resources["readings"] += model.resources["readings"]
            if "bytes_read" in search.resources:
                search.resources["bytes_read"] += model.history[-1]["bytes_read"]
        return Tuned(with_origin(model, made_of), best, list(search.cells.values()), search.table, search.resources)


def _values(name: str, values: Sequence[Any]) -> list[Any]:
    """Numbers in increasing order, as int where the option is one; words in the given order."""
    values = values if isinstance(values, str) else [plain(value) for value in values]
    if isinstance(values, str) or not values or len(set(values)) < len(values):
        raise UsageError(f"{name}: give one or more values, each once")
    if any(isinstance(value, str) for value in values):
        return list(values)
    whole = TrainOptions.__dataclass_fields__[name].type.startswith("int") and all(value == int(value) for value in values)
    return sorted(int(value) if whole else float(value) for value in values)
