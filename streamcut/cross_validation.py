"""Cross-validation of one set of options: how good its models are on unseen rows, and how much that varies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from streamcut.config import CheckpointOptions
from streamcut.data.datasets import stored
from streamcut.data.row_columns import files_of, keys_of_groups, names_with, times_of_rows
from streamcut.errors import UsageError
from streamcut.foundation.shown import Shown
from streamcut.grids.search import Search
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.row_view import HeldOut, folds_of, held_out_view
from streamcut.solvers.progress import Observer
from streamcut.training import checked, opened


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossValidated(Shown):
    """The results of each fold.

    table       a row for each fold (from 0): all measures, the certificate's figures, passes and seconds;
                pandas.DataFrame(found.table) makes a frame of it
    measure     the one asked for, else the first of the task's
    resources   readings: how often rows were read for all trainings; for models trained together also bytes_read
                (decoded from storage), groups, peak (resident bytes)
    """

    table: list[dict[str, Any]]
    measure: str
    resources: dict[str, Any] = field(default_factory=dict)

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

    def shown(self) -> dict[str, Any]:
        converged = sum(bool(line.get("converged")) for line in self.table)
        return {"folds": len(self.table), self.measure: self.mean, "deviation": self.deviation, "converged": converged}


def cross_validate(
    data: Any,
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    group_column: str | None = "qid",
    time_column: str | None = None,
    measure: str | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> CrossValidated:
    """See streamcut.api."""
    C, column = options.pop("C", 1.0), "group_column" if time_column is None else "time_column"
    by = time_column if time_column is not None else None if group_column == "qid" else group_column
    if time_column is not None and group_column not in ("qid", None):
        raise UsageError("group_column and time_column: give one of them")
    if isinstance(checkpoint, str):
        checkpoint = CheckpointOptions(checkpoint)
    hooks: dict[str, Any] = {"on_iteration": on_iteration, "checkpoint": checkpoint, "stop": stop}
    files: list[Any] = []
    given = dict(convert or {})
    if by is not None:
        files = files_of(data, given.get("format", "auto"), ConvertOptions(**given).spelling)
        if not files:
            raise UsageError(f"{column}: {by!r} is a column of a table, which this data is not")
        if moved := sorted({"shuffle", "split", "missing_labels", "on_error"} & set(given)):
            raise UsageError(f"convert: with {moved[0]} the rows are not those of the table whose column defines the folds")
        if time_column is None:
            given["id"] = names_with(given.get("id", ()), by)
    with stored(data, label, given or None, options.get("scratch"), options.get("memory", "auto")) as (place, _):
        whole = opened(place)
        if seed and checked(options)[0].has("seed"):
            options["seed"] = seed
        search = Search(whole, [C], [{}], options, measure, **hooks)
        if by is None:
            search.on_folds(folds_of(whole, folds, seed, group_column), everything=False)
        else:
            count = folds_of(whole, folds, seed, None).count
            parts = _by_time(files, by, count) if time_column is not None else _by_groups(files, by, count, seed)
            search.on_splits([held_out_view(whole, HeldOut(which=which)) for which in parts])
    (cell,) = search.cells.values()
    return CrossValidated(search.table, cell.measure, search.resources)


def _by_groups(files: list[Any], column: str, folds: int, seed: int) -> Iterator[np.ndarray]:
    """Which rows each fold holds out, bool (n): groups in random order, dealt to the folds in turn."""
    groups, codes = np.unique(keys_of_groups(files, column), return_inverse=True)
    if folds > len(groups):
        raise UsageError(f"folds: {folds} folds need at least as many groups, but column {column!r} has {len(groups)} values")
    order = np.random.default_rng(seed).permutation(len(groups))
    for fold in range(folds):
        yield (order[codes] % folds) == fold


def _by_time(files: list[Any], column: str, folds: int) -> Iterator[np.ndarray]:
    """int8 (n) for each fold: 1 for the rows it holds out, 0 for those before, −1 for those after; equal times stay together."""
    times = times_of_rows(files, column)
    known = np.sort(times[~np.isnan(times)])
    begins = np.unique(known[[len(known) * part // (folds + 1) for part in range(1, folds + 1)]])
    begins = begins[begins > known[0]]
    if len(begins) < folds:
        raise UsageError(f"folds: {folds} folds need {folds + 1} parts, and column {column!r} has {len(begins) + 1} that differ")
    for begin, end in pairwise([*begins, np.inf]):
        yield np.where(times >= end, -1, times >= begin).astype(np.int8)
