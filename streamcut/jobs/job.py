"""What a kind of training is to the wiring: what it needs of memory, how it runs, what comes out."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.models.model import Model
from streamcut.solvers.progress import Progress


def identity(options: TrainOptions, fingerprint: str, **found: Any) -> dict[str, Any]:
    """That of a run on the data with this fingerprint: `options.deciding()`, where `found` replaces what options leave open."""
    return {**options.deciding(), "data": fingerprint, **found}


class Job(Protocol):
    """One training, from the options to the model.

    distributable  its passes can run on a Dask cluster; task: of the models
    A job whose best point and cuts can go on with another C has also `trainer(runner, plan)` (streamcut.jobs.linear.Trainer), one
    that can be done in groups of classes `in_groups()`.
    """

    distributable: ClassVar[bool]

    @property
    def options(self) -> TrainOptions: ...

    @property
    def task(self) -> str: ...

    @property
    def lanes(self) -> Lanes: ...

    @property
    def workers(self) -> int: ...

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        """What `options` ask for on such data. Raises UsageError and BadInputError."""

    def needs(self, manifest: Manifest) -> Needs:
        """What it takes of memory."""

    def warm_up(self, manifest: Manifest) -> None:
        """Do the same on a few rows, so that compiled kernels and threads are there when memory is measured."""

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        """What runs have in common of which one continues another (JSON types): all options but those known not to matter."""

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        """Train: the whole model but for its `resources`."""
