"""The same job in less memory: classes in groups, then fewer threads; and what else would fit where neither is enough."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import MemoryPlan
from streamcut.jobs.job import Job
from streamcut.units import format_bytes

run_log = logging.getLogger("streamcut.run")
Planned = Callable[[Job], MemoryPlan]
Others = Callable[[], Iterable[tuple[str, Job]]]


def smallest_change(job: Job, planned: Planned, *, threads: bool, others: Others) -> tuple[Job, MemoryPlan]:
    """The first of `job` and what takes less memory than it that can be planned, and its plan. `threads`: it may take fewer.

    Raises MemoryBudgetError with the least that is needed, and with options, fewer cuts or one of `others` (options, job), that
    would make it less.
    """
    for smaller in _choices(job, threads=threads):
        try:
            plan = planned(smaller)
        except MemoryBudgetError as error:
            last, refused = smaller, error
            continue
        if smaller.workers < job.workers:
            run_log.info("memory: %d threads instead of %d", smaller.workers, job.workers)
        if (group := getattr(smaller, "group", None)) is not None:
            run_log.info("memory: %d classes at a time, which read the data one group after the other", group)
        return smaller, plan
    raise MemoryBudgetError(f"{refused}{_advice(planned, [*_with_fewer_cuts(last), *others()])}") from None


def _choices(job: Any, *, threads: bool) -> Iterator[Any]:
    """The job, then in groups of classes (which cost reading, not work), then all of it with fewer threads."""
    for workers in range(job.workers, 0, -1) if threads else [job.workers]:
        fewer = job if workers == job.workers else replace(job, workers=workers)
        yield from fewer.in_groups() if hasattr(job, "in_groups") else [fewer]


def _with_fewer_cuts(job: Any) -> Iterator[tuple[str, Job]]:
    """(options, job) with bundles half as large, again and again."""
    cuts, one = getattr(job, "max_cuts", 0) // 2, " --workers 1" * (job.workers > 1)
    while cuts >= job.options.record.least_cuts:
        yield f"--max-cuts {cuts}{one}", replace(job, max_cuts=cuts, workers=1)
        cuts //= 2


def _advice(planned: Planned, choices: list[tuple[str, Job]]) -> str:
    """Which of `choices` would fit, the first of them; or else which takes least."""
    least: dict[int, str] = {}
    for options, job in choices:
        try:
            planned(job)
        except MemoryBudgetError as error:
            if error.least is not None:
                least.setdefault(error.least, options)
            continue
        return f". It would fit with {options}"
    return f". The least is {format_bytes(min(least))}, with {least[min(least)]}" if least else ""
