"""The interface of a kind of training: its memory needs, how it runs, its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.models.model import Model
from streamcut.solvers.progress import Progress


def identity(options: TrainOptions, fingerprint: str, **fields: Any) -> dict[str, Any]:
    """The identity of a run on the data with this fingerprint: `options.deciding()`, updated by `fields`."""
    return {**options.deciding(), "data": fingerprint, **fields}


@dataclass(frozen=True)
class Job:
    """One training, from the options to the model.

    distributable  its passes can run on a Dask cluster
    """

    options: TrainOptions
    lanes: Lanes
    workers: int
    distributable: ClassVar[bool] = True

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        """The job for `options` on these data. Raises UsageError and BadInputError."""
        raise NotImplementedError

    def smaller(self) -> Iterator[tuple[Self, str]]:
        """The job, then ones that take less memory, each with what it does without."""
        yield self, ""

    def needs(self, manifest: Manifest) -> Needs:
        """Its memory needs."""
        raise NotImplementedError

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        """What a run and its continuation must share (JSON types): all options but those known not to matter."""
        raise NotImplementedError

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        """Train; returns the complete model except its `resources`."""
        raise NotImplementedError


@dataclass(frozen=True)
class BundleJob(Job):
    """One with a bundle of `max_cuts` cuts; by itself it takes no fewer than `fewest_cuts`."""

    max_cuts: int
    fewest_cuts: ClassVar[int] = 20

    def smaller(self) -> Iterator[tuple[Self, str]]:
        """The job, then, unless the options set max_cuts, with repeatedly half as many cuts: few trainings need all of them,
        and those take more passes."""
        yield self, ""
        cuts = self.max_cuts
        while self.options.max_cuts is None and cuts > self.fewest_cuts:
            cuts = max(cuts // 2, self.fewest_cuts)
            yield replace(self, max_cuts=cuts), f"a bundle of {cuts} cuts instead of {self.max_cuts}"


class Trains(Protocol):
    """Trains for one C, or λ, after another."""

    def train(self, C: float, progress: Progress, *, l1: float | str | None = None, keep: bool = False) -> Model:
        """As streamcut.jobs.linear.Trainer.train."""


class PathJob(Job):
    """One whose trainings with several C, or λ, follow one another."""

    def trainer(self, runner: Runner, plan: MemoryPlan) -> Trains:
        """A trainer for one C, or λ, after another."""
        raise NotImplementedError

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)
