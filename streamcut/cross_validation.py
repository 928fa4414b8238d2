"""Cross-validation of one set of options: how good its models are on rows that they have not seen, and how much that varies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any

from streamcut.config import CheckpointOptions
from streamcut.foundation.shown import Shown
from streamcut.grids.search import Search
from streamcut.io.dataset import Dataset
from streamcut.io.row_view import folds_of
from streamcut.solvers.progress import Observer
from streamcut.training import opened


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossValidated(Shown):
    """What came out for each fold.

    table       a line for each fold (from 0): all measures, what the model's certificate says, passes and seconds;
                pandas.DataFrame(found.table) is a frame of them
    measure     the first of the task's measures, which models are chosen by
    resources   readings: how often rows were read for all trainings; of models that were trained together also bytes_read
                (decoded from storage), groups, peak (resident bytes)
    """

    table: list[dict[str, Any]]
    measure: str
    resources: dict[str, Any] = field(default_factory=dict)

    def values(self, measure: str | None = None) -> list[float]:
        """A measure of each fold, None standing for the first."""
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
    data: str | os.PathLike | Dataset,
    *,
    folds: int = 5,
    fold_seed: int = 0,
    groups: str | None = "qid",
    measure: str | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> CrossValidated:
    """Train with the same `options` on all folds but one, and measure on that, each in turn.

    data        what `streamcut.tune` takes; folds, fold_seed, groups: as there, rows of one qid stay together
    measure     of streamcut.evaluate, for `values` and `mean`; None: the first that models of the task have
    checkpoint  linear solvers: a folder for checkpoints, or a CheckpointOptions, which also resumes

    Linear solvers train the models of all folds in the same passes through the data. The other arguments, and what is raised, are
    those of `tune`.

    >>> found = cross_validate("rows.zarr", folds=2, C=10.0)  # made in the example of `convert`
    >>> len(found.values("accuracy")), found.measure
    (2, 'accuracy')
    """
    whole, C = opened(data), options.pop("C", 1.0)
    if isinstance(checkpoint, str):
        checkpoint = CheckpointOptions(checkpoint)
    hooks: dict[str, Any] = {"on_iteration": on_iteration, "checkpoint": checkpoint, "stop": stop}
    search = Search(whole, [C], [{}], options, measure, **hooks)
    search.on_folds(folds_of(whole, folds, fold_seed, groups), everything=False)
    (cell,) = search.cells.values()
    return CrossValidated(search.table, cell.measure, search.resources)
