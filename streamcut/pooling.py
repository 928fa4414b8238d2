"""How trainings on the same data divide memory, and whether those that differ in their rows alone share one row cache.

A pool (streamcut.execution.row_pool) is for where memory is too little for a row cache of each. As long as it is not, each has
its own: what it computes is then what it would alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import visiting_bytes
from streamcut.execution.row_pool import MOST_MEMBERS, RowPool
from streamcut.execution.shared_reading import Reader
from streamcut.io.row_view import RowView
from streamcut.training import Session

_ENOUGH = 0.9  # of the row cache that a training wants
_OTHERS = 0.5  # of the memory: what all else may have of it, if that will do, before there is a pool

Together = list[tuple[Session, Reader]]  # trainings that differ in their rows alone


def divide(groups: Sequence[Together], free: int, workers: int) -> int:
    """Give each training its share of `free` bytes, `workers` of them running at a time, and pools where those are better.

    Returns the bytes that are not in what each of them plans: of pools, and of what they take while they visit rows.
    """
    everyone = [run for group in groups for run, _ in group]
    visiting = _shared_out(everyone, free, workers)
    if all(map(_has_cache, everyone)):
        return visiting
    pooled = {number: jobs for number, group in enumerate(groups) if (jobs := _pooled(group)) is not None}
    before = [run.job for run in everyone]
    for number, jobs in pooled.items():
        for (run, _), job in zip(groups[number], jobs, strict=True):
            run.job = job
    visiting, taken = _shared_out(everyone, free, workers), 0
    for number in pooled:
        found = _pool(groups[number])
        if found == 0:  # too little for that, too
            for run, job in zip(everyone, before, strict=True):
                run.job, run.member = job, None
            return _shared_out(everyone, free, workers)
        taken += found
    return visiting + taken


def _shared_out(everyone: Sequence[Session], free: int, workers: int) -> int:
    """Give each its share; returns what is taken while rows are visited, before that."""
    visiting = workers * max(visiting_bytes(run.job.needs(run.dataset.manifest), run.dataset.manifest) for run in everyone)
    for run in everyone:
        run.share = max(free - visiting, 0) // len(everyone)
    return visiting


def _has_cache(run: Session) -> bool:
    """Whether the row cache of its own is as large as it should be."""
    try:
        return run.planned()[1].row_cache >= _ENOUGH * run.job.needs(run.dataset.manifest).row_cache[1]
    except MemoryBudgetError:
        return False


def _pooled(group: Together) -> list[Any] | None:
    """What these trainings do if they have a pool; None: that is not to be."""
    jobs = [run.job.with_pool(run.dataset.manifest) if hasattr(run.job, "with_pool") else None for run, _ in group]
    few = 1 < len(group) <= MOST_MEMBERS
    return jobs if few and None not in jobs and all(_numbered(run.dataset) for run, _ in group) else None


def _numbered(rows: Any) -> bool:
    """Whether rows are those of the data as they are, by their numbers."""
    return isinstance(rows, Reader) or (isinstance(rows, RowView) and rows.by_number)


def _pool(group: Together) -> int:
    """Have them share the rows of a pool, and return its bytes; 0: they take too much without it."""
    needed, budget = 0, sum(run.share or 0 for run, _ in group)
    try:
        for run, _ in group:
            share = run.share or 0
            try:
                run.share = int(_OTHERS * share)
                needed += run.planned()[1].needed
            except MemoryBudgetError:
                run.share = share
                needed += run.planned()[1].needed
    except MemoryBudgetError:
        return 0
    first, reader = group[0]
    size, taken = first.job.pool_size(reader.manifest, budget - needed, len(group))  # type: ignore[attr-defined]
    if size is None:
        return 0
    pool = RowPool(reader.shared, size)
    for run, each in group:
        run.member = pool.join(each, run.dataset if isinstance(run.dataset, RowView) else None)
    return taken
