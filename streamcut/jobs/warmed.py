"""Warms up once per process and kind of training: the next training of that kind finds its kernels loaded.

A small fit takes a few milliseconds, and a warm-up as much again.
"""

from __future__ import annotations

from typing import Any

from streamcut.compiler.compiling import compiler
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Job

_known: set[tuple[Any, ...]] = set()


def warm_up(job: Job, manifest: Manifest) -> None:
    """Call `job.warm_up`, unless a training of this kind has been warmed up."""
    kind = kind_of(job, manifest)
    if kind not in _known:
        compiler.run(job.warm_up, manifest)
        _known.add(kind)


def kind_of(job: Any, manifest: Manifest) -> tuple[Any, ...]:
    """A key shared by trainings that call the same kernels with the same types; numeric options enter by their sign."""
    fields = job.options.__dataclass_fields__.items()
    others = ((name, _sort(value)) for name, each in fields if (value := getattr(job.options, name)) is not each.default)
    options = frozenset((name, sort) for name, sort in others if sort != _sort(job.options.__dataclass_fields__[name].default))
    statistics = manifest.statistics
    values = frozenset((shard.arrays["data"].dtype, shard.ones) for shard in manifest.shards)
    labels = None if statistics.labels is None else min(len(statistics.labels), 3)
    return type(job), job.workers > 1, options, values, statistics.weight_sum is None, statistics.groups is None, labels


def _sort(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return type(value), (value > 0) - (value < 0)
    return value if value is None or isinstance(value, str | bool) else type(value)
