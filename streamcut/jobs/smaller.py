"""The same job in less memory: fewer columns at a time or smaller bundles, then fewer threads, then vectors in scratch files; and
advice on what would fit where none of these suffices."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError, given
from streamcut.execution.plan import MemoryPlan
from streamcut.foundation.units import format_bytes
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Job

run_log = logging.getLogger("streamcut.run")
_FEWEST_CUTS = 20  # of a bundle of default size; bundle-dca's default is smaller
_SIZES = ("max_cuts", "budget", "samples")  # options that increase memory
_SIZES_GIVEN = ("batch", "nystroem", "fourier", "row_cache", "kernel_cache")  # and those whose default is the minimum
Planned = Callable[[Job], MemoryPlan]
Others = Callable[[], Iterable[tuple[str, Job]]]


def smallest_change(
    job: Job, planned: Planned, *, threads: bool, others: Others, manifest: Manifest | None = None
) -> tuple[Job, MemoryPlan]:
    """The first of `job` and its smaller variants whose plan fits, and that plan.

    `threads`: fewer threads are allowed. `manifest` of the data: if given, vectors may be in scratch files.

    Raises MemoryBudgetError with the minimum, and with options (fewer cuts, or one of the `others` (options, job)) that would
    lower it.
    """
    for smaller in _choices(job, threads=threads, manifest=manifest):
        try:
            plan = planned(smaller)
        except MemoryBudgetError as error:
            last, refused = smaller, error
            continue
        if (cuts := getattr(smaller, "max_cuts", 0)) < getattr(job, "max_cuts", 0):
            run_log.info("memory: a bundle of %d cuts instead of %d", cuts, job.max_cuts)  # type: ignore[attr-defined]
        if smaller.workers < job.workers:
            run_log.info("memory: %d threads instead of %d", smaller.workers, job.workers)
        if (group := getattr(smaller, "group", None)) is not None:
            run_log.info("memory: %d columns at a time, the others wait until one leaves", group)
        if getattr(smaller, "far", False):
            run_log.info("memory: cuts and the best weights in scratch files%s", "" if smaller.swept else ", no row cache")  # type: ignore[attr-defined]
        return smaller, plan
    choices = [*_with_fewer_cuts(last), *_with_smaller_sizes(last), *others()]
    told = MemoryBudgetError(f"{refused}{_advice(planned, choices, refused.least or 0)}")
    told.least = refused.least
    raise told from None


def _choices(job: Any, *, threads: bool, manifest: Manifest | None) -> Iterator[Any]:
    """The job, then with ever fewer columns at a time (which costs reading, not arithmetic) or with smaller bundles, then all of
    these with fewer threads, then with files."""
    for workers in range(job.workers, 0, -1) if threads else [job.workers]:
        fewer = job if workers == job.workers else replace(job, workers=workers)
        yield from fewer.in_groups() if hasattr(job, "in_groups") else _with_shorter_bundles(fewer)
    if manifest is not None and hasattr(job, "with_files") and (threads or job.workers == 1):
        yield from job.with_files(manifest)


def _with_shorter_bundles(job: Any) -> Iterator[Any]:
    """The job, then, unless max_cuts is given, with repeatedly half as many cuts: few trainings need all of them, and those
    take more passes."""
    yield job
    fewest = getattr(job, "fewest_cuts", _FEWEST_CUTS)
    while job.options.max_cuts is None and getattr(job, "max_cuts", 0) > fewest:
        job = replace(job, max_cuts=max(job.max_cuts // 2, fewest))
        yield job


def _with_fewer_cuts(job: Any) -> Iterator[tuple[str, Job]]:
    """(options, job) with the bundle repeatedly halved."""
    cuts, one = getattr(job, "max_cuts", 0) // 2, " --workers=1" * (job.workers > 1)
    while cuts >= job.options.record.least_cuts:
        yield f"{given('max-cuts', cuts)}{one}", replace(job, max_cuts=cuts, workers=1)
        cuts //= 2


def _with_smaller_sizes(job: Any) -> Iterator[tuple[str, Job]]:
    """(options, job) with the support vectors repeatedly halved, down to those that it begins with or merges, or the rows of a
    sample; and with caches that fit in memory."""
    for name, least in (("budget", lambda: max(job.options.merged, job.vectors_before)), ("samples", lambda: 2)):
        size = getattr(job, name, None)
        while size is not None and (size := size // 2) >= least():
            yield given(name, size), replace(job, **{name: size})
    for name in ("row_cache", "kernel_cache"):
        if getattr(job.options, name) not in ("auto", "0"):
            yield given(name.replace("_", "-"), "auto"), replace(job, options=replace(job.options, **{name: "auto"}))


def _advice(planned: Planned, choices: list[tuple[str, Job]], needed: int) -> str:
    """The first of `choices` that would fit; else the one that takes least, if less than what is `needed` now."""
    least: dict[int, str] = {}
    for options, job in choices:
        try:
            planned(job)
        except MemoryBudgetError as error:
            if error.least is not None:
                least.setdefault(error.least, options)
            continue
        return f". It would fit with {options}"
    return f". The least is {format_bytes(min(least))}, with {least[min(least)]}" if least and min(least) < needed else ""


def in_files(job: Any, manifest: Manifest) -> Iterator[tuple[str, Job]]:
    """(options, job) with vectors in scratch files, where the given options prevent that."""
    needed = {"workers": 1, **({"lanes": 1, "row_cache": "0"} if job.solver.dual else {})}
    changed = {name: value for name, value in needed.items() if getattr(job.options, name) not in (None, "auto", value)}
    if changed:
        said = " ".join(given(name.replace("_", "-"), value) for name, value in changed.items())
        other = type(job).planned(replace(job.options, **changed), manifest)
        yield from ((said, each) for each in other.with_files(manifest))


def lowerable(options: TrainOptions, job: Any) -> tuple[str, ...]:
    """The options that can be lowered so that `job` takes less memory; columns, say, have no bundle."""
    names = [name for name in _SIZES if options.has(name) and (name != "max_cuts" or hasattr(job, name))]
    names += [name for name in _SIZES_GIVEN if getattr(options, name) != TrainOptions.__dataclass_fields__[name].default]
    return tuple(f"--{name.replace('_', '-')}" for name in [*names, *["workers"] * (job.workers > 1)])
