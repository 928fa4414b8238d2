"""The same job in less memory: classes in groups, then fewer threads, and what else would fit where neither is enough."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import MemoryPlan
from streamcut.jobs.job import Job

run_log = logging.getLogger("streamcut.run")


def smallest_change(job: Job, planned: Callable[[Job], MemoryPlan], *, threads: bool) -> tuple[Job, MemoryPlan]:
    """The first of `job` and what takes less memory than it that can be planned, and its plan. `threads`: it may take fewer.

    Raises MemoryBudgetError with the least that is needed, and the options that would make it fit if there are any.
    """
    for smaller in _choices(job, threads=threads):
        try:
            plan = planned(smaller)
        except MemoryBudgetError as error:
            refused = error
            continue
        if smaller.workers < job.workers:
            run_log.info("memory: %d threads instead of %d", smaller.workers, job.workers)
        if (group := getattr(smaller, "group", None)) is not None:
            run_log.info("memory: %d classes at a time, which read the data one group after the other", group)
        return smaller, plan
    raise refused


def _choices(job: Any, *, threads: bool) -> Iterator[Any]:
    """The job, then in groups of classes (which cost reading, not work), then all of it with fewer threads."""
    for workers in range(job.workers, 0, -1) if threads else [job.workers]:
        fewer = job if workers == job.workers else replace(job, workers=workers)
        yield from fewer.in_groups() if hasattr(job, "in_groups") else [fewer]
