"""What a kind of training is to the wiring: what it needs of memory, how it runs, what comes out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.models.model import Model
from streamcut.solvers.progress import Progress

_GROWTH = 0.1  # of the budget: what bundles may take beyond the cuts that they begin with


@dataclass(frozen=True, slots=True)
class Needs:
    """What the memory plan is made of.

    dimension   length of a dense vector; `vectors` of them for each worker, max_cuts + 1 in the bundle (−1: there is none)
    most_cuts   the bundle may grow so far, if memory allows; 0: it does not grow. A cut takes `cut_bytes` in each row's state
    row_bytes   row state of one row
    row_cache   (least, most) bytes for copies of rows, or what `cached` names
    more        (what, bytes) of anything else
    per_worker  (what, bytes) of anything else that each thread takes, wherever it runs
    """

    dimension: int
    max_cuts: int = -1
    vectors: int = 1
    row_bytes: int = 0
    row_cache: tuple[int, int] = (0, 0)
    cached: str = "row cache"
    more: tuple[tuple[str, int], ...] = ()
    per_worker: tuple[tuple[str, int], ...] = ()
    most_cuts: int = 0
    cut_bytes: int = 0

    def planned(self, n_rows: int, budget: int, plan: Callable[[Needs], MemoryPlan]) -> MemoryPlan:
        """What `plan` makes of it, with as many cuts as the bundle may grow to.

        Growth gets a part of the budget at most, and never drives the row state to disk. Raises MemoryBudgetError when not even
        `max_cuts` fit.
        """
        least, most = plan(self), self.most_cuts
        while most > self.max_cuts:
            more = most - self.max_cuts
            if more * (self.cut_bytes * n_rows + 8 * self.dimension) <= _GROWTH * budget:
                with suppress(MemoryBudgetError):  # then fewer may do
                    grown = plan(replace(self, max_cuts=most, row_bytes=self.row_bytes + more * self.cut_bytes))
                    if grown.spilled == least.spilled:
                        return replace(grown, max_cuts=most)
            most //= 2
        return replace(least, max_cuts=self.max_cuts)


def identity(options: TrainOptions, fingerprint: str, **found: Any) -> dict[str, Any]:
    """That of a run on the data with this fingerprint: `options.deciding()`, where `found` replaces what options leave open."""
    return {**options.deciding(), "data": fingerprint, **found}


class Job(Protocol):
    """One training, from the options to the model.

    distributable  its passes can run on a Dask cluster; task: of the models
    A job whose best point and cuts can go on with another C has also `trainer(runner, plan)` (streamcut.jobs.linear.Trainer).
    """

    distributable: ClassVar[bool]

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
