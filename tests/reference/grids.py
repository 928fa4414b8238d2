"""Grids of columns as jobs train them, without what surrounds `tune`: threads, the memory plan, checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.execution.feed import Feed
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import Folds
from streamcut.jobs.columns import ColumnsJob, Point
from streamcut.solvers.progress import Progress, StoppingRule


def grid(
    data: MemoryDataset, points: Sequence[Point], folds: Folds | None = None, *, workers: int = 1, cache: int | None = 1 << 20,
    group: int | None = None, **given: Any,
) -> list[Any]:  # fmt: skip
    """The model of each point."""
    options = TrainOptions(**given)
    job = ColumnsJob.of(options, data.manifest, points, folds)
    job = job if group is None else next(smaller for smaller, _ in job.smaller() if smaller.at_once == group)
    pinned = frozenset(range(len(data.manifest.shards)))
    rule = StoppingRule(options.tol, options.tol_relative, options.target, options.max_passes, options.max_time)
    with Runner(Feed(data, pinned), job.lanes, workers) as runner:
        return job.models(runner, Progress(rule), MemoryPlan(0, (), pinned, 0, row_cache=cache))


def kept(folds: Folds, n: int, fold: int) -> np.ndarray:
    """The rows that a column without `fold` has, bool (n,)."""
    return folds.of_rows(0, n) != fold
