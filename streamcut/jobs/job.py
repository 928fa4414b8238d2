"""The interface of a kind of training: its memory needs, how it runs, its result."""

from __future__ import annotations

from typing import Any, Protocol, Self

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.models.model import Model
from streamcut.solvers.progress import Progress


def identity(options: TrainOptions, fingerprint: str, **fields: Any) -> dict[str, Any]:
    """The identity of a run on the data with this fingerprint: `options.deciding()`, updated by `found`."""
    return {**options.deciding(), "data": fingerprint, **fields}


class Job(Protocol):
    """One training, from the options to the model.

    distributable  its passes can run on a Dask cluster
    A job whose best point and cuts carry over to another C also has `trainer(runner, plan)` (streamcut.jobs.linear.Trainer), one
    that can train fewer columns at a time `in_groups()`.
    """

    @property
    def distributable(self) -> bool: ...

    @property
    def options(self) -> TrainOptions: ...

    @property
    def lanes(self) -> Lanes: ...

    @property
    def workers(self) -> int: ...

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        """The job for `options` on these data. Raises UsageError and BadInputError."""

    def needs(self, manifest: Manifest) -> Needs:
        """Its memory needs."""

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        """What a run and its continuation must share (JSON types): all options but those known not to matter."""

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        """Train; returns the complete model except its `resources`."""
