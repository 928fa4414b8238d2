"""The same job in less memory: fewer columns at a time or smaller bundles, then fewer threads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import MemoryPlan
from streamcut.jobs.job import Job

run_log = logging.getLogger("streamcut.run")
_FEWEST_CUTS = 20  # of a bundle of default size; bundle-dca's default is smaller
_SIZES = ("max_cuts", "budget", "samples")  # options that increase memory
_SIZES_GIVEN = ("nystroem", "fourier", "row_cache", "kernel_cache")  # and those whose default is the minimum
Planned = Callable[[Job], MemoryPlan]


def smallest_change(job: Job, planned: Planned, *, threads: bool) -> tuple[Job, MemoryPlan]:
    """The first of `job` and its smaller variants whose plan fits, and that plan.

    `threads`: fewer threads are allowed.

    Raises MemoryBudgetError with the minimum.
    """
    for smaller in _choices(job, threads=threads):
        try:
            plan = planned(smaller)
        except MemoryBudgetError as error:
            refused = error
            continue
        if (cuts := getattr(smaller, "max_cuts", 0)) < getattr(job, "max_cuts", 0):
            run_log.info("memory: a bundle of %d cuts instead of %d", cuts, job.max_cuts)  # type: ignore[attr-defined]
        if smaller.workers < job.workers:
            run_log.info("memory: %d threads instead of %d", smaller.workers, job.workers)
        if (group := getattr(smaller, "group", None)) is not None:
            run_log.info("memory: %d columns at a time, the others wait until one leaves", group)
        return smaller, plan
    raise refused


def _choices(job: Any, *, threads: bool) -> Iterator[Any]:
    """The job, then with ever fewer columns at a time (which costs reading, not arithmetic) or with smaller bundles, each with
    fewer threads first, so that the number of processors decides nothing else."""
    for smaller in job.in_groups() if hasattr(job, "in_groups") else _with_shorter_bundles(job):
        for workers in range(job.workers, 0, -1) if threads else [job.workers]:
            yield smaller if workers == job.workers else replace(smaller, workers=workers)


def _with_shorter_bundles(job: Any) -> Iterator[Any]:
    """The job, then, unless max_cuts is given, with repeatedly half as many cuts: few trainings need all of them, and those
    take more passes."""
    yield job
    fewest = getattr(job, "fewest_cuts", _FEWEST_CUTS)
    while job.options.max_cuts is None and getattr(job, "max_cuts", 0) > fewest:
        job = replace(job, max_cuts=max(job.max_cuts // 2, fewest))
        yield job


def lowerable(options: TrainOptions, job: Any, workers: int) -> tuple[str, ...]:
    """The options that can be lowered so that `job` takes less memory; columns, say, have no bundle."""
    names = [name for name in _SIZES if options.has(name) and (name != "max_cuts" or hasattr(job, name))]
    names += [name for name in _SIZES_GIVEN if getattr(options, name) != TrainOptions.__dataclass_fields__[name].default]
    return tuple(f"--{name.replace('_', '-')}" for name in [*names, *["workers"] * (workers > 1)])
