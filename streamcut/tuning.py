"""Parameter search, over any options that decide about the model, and cross-validation of one set of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.config import GRID, CheckpointOptions, TrainOptions
from streamcut.data.datasets import measurable, stored, with_origin
from streamcut.data.inputs import opened
from streamcut.errors import UsageError
from streamcut.foundation.shown import Shown
from streamcut.foundation.units import plain
from streamcut.grids.search import Cell, Search
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.row_view import HeldOut, folds_of, held_out_view
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.options.option import declared
from streamcut.training import checked, train

if TYPE_CHECKING:
    from streamcut.grids.search import Tried
    from streamcut.io.tables.files import TableFile
    from streamcut.solvers.progress import Observer

_FIRST = ("C", "l1", "gamma", "budget", "nu")  # the order of options in tables; others follow as given


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuned(Shown):
    """`model` has the options of `best`, the cell with the best mean (the first tried among equals).

    table       a row for each model measured: its options, fold (from 0), all measures, its certificate's figures,
                passes and seconds; pandas.DataFrame(result.table) makes a frame of it
    resources   readings: how often rows were read in total, to train, to draw folds and to measure models; for
                models trained together also bytes_read (decoded from storage, in total), groups (all columns over
                those that memory holds at a time, rounded up), peak (resident bytes of the process)
    """

    model: Model
    best: Cell
    cells: list[Cell]
    table: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, object] = field(default_factory=dict)

    def shown(self) -> dict[str, object]:
        best = self.best
        return {**best.options, best.measure: best.mean, "tried": len(self.cells), "model": type(self.model).__name__}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossValidated(Shown):
    """The results of each fold.

    table       a row for each fold (from 0): all measures, the certificate's figures, passes and seconds;
                pandas.DataFrame(result.table) makes a frame of it
    measure     the one asked for, else log loss where there are probabilities, else the task's first
    resources   readings: how often rows were read for all trainings; for models trained together also bytes_read
                (decoded from storage), groups, peak (resident bytes)
    """

    table: list[dict[str, Any]]
    measure: str
    resources: dict[str, object] = field(default_factory=dict)

    def values(self, measure: str | None = None) -> list[float]:
        """A measure of each fold; None: `measure`."""
        return [line[measure or self.measure] for line in self.table]

    @property
    def mean(self) -> float:
        return fmean(self.values())

    @property
    def deviation(self) -> float:
        """Standard deviation over the folds."""
        return pstdev(self.values())

    def shown(self) -> dict[str, object]:
        converged = sum(bool(line.get("converged")) for line in self.table)
        return {"folds": len(self.table), self.measure: self.mean, "deviation": self.deviation, "converged": converged}


def tune(
    data: object, grid: Mapping[str, Sequence[object]], *, label: str | None, convert: Mapping[str, object] | None,
    validation: object, folds: int | None, seed: int, group_column: str | None, measure: str | None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None,
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None, on_iteration: Observer | None,
    checkpoint: CheckpointOptions | str | None, stop: Callable[[], bool] | None, **options: Any,
) -> Tuned:  # fmt: skip
    """See streamcut.api."""
    if unknown := sorted(set(grid) - set(GRID)) or not grid:
        what = ", ".join(unknown) if isinstance(unknown, list) else "nothing"
        raise UsageError(f"grid: takes options of `train` that affect the result ({', '.join(GRID)}), not {what}")
    if (validation is None) == (folds is None):
        raise UsageError("--validation DATA and --folds NUMBER: give either validation data or a number of folds")
    names = sorted(grid, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    points = {name: values_of(name, grid[name]) for name in names}
    if twice := sorted(set(points) & set(options)):
        raise UsageError(f"{', '.join(twice)}: already in the grid")
    Cs = points.pop("C", [1.0] if "C" not in options else [options.pop("C")])
    others = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
    with ExitStack() as held:
        room = options.get("scratch"), options.get("memory", "auto")
        rows, made_of = held.enter_context(stored(data, label, convert, *room))
        seeded, saving = _seeded(options, others[0], Cs[0], seed), CheckpointOptions.of(checkpoint)
        whole = opened(rows)
        search = Search(whole, Cs, others, seeded, measure, on_model, on_trained, on_iteration, saving, stop)
        if validation is not None:
            search.on_validation(opened(held.enter_context(measurable(validation, whole.recipe, *room))))
        else:
            search.on_folds(folds_of(whole, folds, seed, group_column), everything=True)
        best = search.best
        model = search.models.get(tuple(best.options.values()))
        if model is None:
            saving = saving and replace(saving, directory=below(saving.directory, "best"))
            model = train(whole, **search.options, **best.options, on_iteration=on_iteration, checkpoint=saving, stop=stop)
            search.resources["readings"] += model.resources["readings"]
            if "bytes_read" in search.resources:
                search.resources["bytes_read"] += model.history[-1]["bytes_read"]
        return Tuned(with_origin(model, made_of), best, list(search.cells.values()), search.table, search.resources)


def cross_validate(
    data: object, *, label: str | None, convert: Mapping[str, object] | None, folds: int, seed: int, group_column: str | None,
    time_column: str | None, measure: str | None, on_iteration: Observer | None, checkpoint: CheckpointOptions | str | None,
    stop: Callable[[], bool] | None, **options: Any,
) -> CrossValidated:  # fmt: skip
    """See streamcut.api."""
    C, column = options.pop("C", 1.0), "group_column" if time_column is None else "time_column"
    by = time_column if time_column is not None else None if group_column == "qid" else group_column
    if time_column is not None and group_column not in ("qid", None):
        raise UsageError("group_column and time_column: give one of them")
    files: list[TableFile] = []
    conversion: dict[str, Any] = dict(convert or {})
    if by is not None:
        from streamcut.data.row_columns import files_of, with_id  # loads Arrow, which other trainings do not need

        files = files_of(data, conversion.get("format", "auto"), ConvertOptions(**conversion).spelling)
        if not files:
            raise UsageError(f"{column}: {by!r} is a column of a table, which this data is not")
        if moved := sorted({"shuffle", "split", "missing_labels", "on_error"} & set(conversion)):
            raise UsageError(f"convert: with {moved[0]} the rows are not those of the table whose column defines the folds")
        if time_column is None:
            conversion = with_id(conversion, by)
    room = options.get("scratch"), options.get("memory", "auto")
    with stored(data, label, conversion or None, *room) as (rows, _):
        seeded, saving = _seeded(options, {}, C, seed), CheckpointOptions.of(checkpoint)
        search = Search(opened(rows), [C], [{}], seeded, measure, on_iteration=on_iteration, checkpoint=saving, stop=stop)
        if by is None:
            search.on_folds(folds_of(search.data, folds, seed, group_column), everything=False)
        else:
            count = folds_of(search.data, folds, seed, None).count
            parts = _by_time(files, by, count) if time_column is not None else _by_groups(files, by, count, seed)
            search.on_splits([held_out_view(search.data, HeldOut(which=which)) for which in parts])
    (cell,) = search.cells.values()
    return CrossValidated(search.table, cell.measure, search.resources)


def _seeded(options: dict[str, Any], point: dict[str, Any], C: float, seed: int) -> dict[str, Any]:
    """`options` with the seed of the folds, where the solver draws and a `point` of the grid does not say how."""
    draws = seed and "seed" not in point and checked({**options, **point, "C": C})[0].has("seed")
    return {**options, "seed": seed} if draws else options


def values_of(name: str, values: Sequence[Any]) -> list[Any]:
    """The values of an option in a grid: numbers in increasing order, as int where it is one; words in the given order."""
    kind = TrainOptions.__dataclass_fields__[name].type
    values = values if isinstance(values, str) else [declared(plain(value), kind) for value in values]
    if isinstance(values, str) or not values or len(set(values)) < len(values):
        raise UsageError(f"{name}: give one or more values, each once")
    return values if any(isinstance(value, str) for value in values) else sorted(values)


def _by_groups(files: list[TableFile], column: str, folds: int, seed: int) -> Iterator[np.ndarray]:
    """Which rows each fold holds out, bool (n): groups in random order, dealt to the folds in turn."""
    from streamcut.data.row_columns import keys_of_groups

    groups, codes = np.unique(keys_of_groups(files, column), return_inverse=True)
    if folds > len(groups):
        raise UsageError(f"folds: {folds} folds need at least as many groups, but column {column!r} has {len(groups)} values")
    order = np.random.default_rng(seed).permutation(len(groups))
    for fold in range(folds):
        yield (order[codes] % folds) == fold


def _by_time(files: list[TableFile], column: str, folds: int) -> Iterator[np.ndarray]:
    """int8 (n) for each fold: 1 for the rows it holds out, 0 for those before, −1 for those after; equal times stay together."""
    from streamcut.data.row_columns import times_of_rows

    times, ordered = times_of_rows(files, column)
    begins = np.unique(ordered[[len(ordered) * part // (folds + 1) for part in range(1, folds + 1)]])
    begins = begins[begins > ordered[0]]
    if len(begins) < folds:
        raise UsageError(f"folds: {folds} folds need {folds + 1} parts, and column {column!r} has {len(begins) + 1} that differ")
    for begin, end in pairwise([*begins, np.inf]):
        yield np.where(times >= end, -1, times >= begin).astype(np.int8)
