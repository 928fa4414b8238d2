"""The interface of a kind of training: its memory needs, how it runs, its result; and what training does around a job: check the
row weights first, take less memory if it must, and give the model all features."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, cast

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.execution.passes import Lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.execution.views import OccurringDataset
from streamcut.io.manifest import Manifest, Statistics
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.solvers.progress import Progress

if TYPE_CHECKING:
    from streamcut.models.kernel import KernelModel


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

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, object]:
        """What a run and its continuation must share (JSON types): the data, all options but those known not to matter, and what
        is `decided`."""
        return {**self.options.deciding(), "data": fingerprint, **self.decided(plan)}

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        """What decides bits and follows neither from the options nor from the data."""
        return {"lanes": len(self.lanes)}

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        """Train; returns the complete model except its `resources`."""
        raise NotImplementedError


@dataclass(frozen=True)
class BundleJob(Job):
    """One with a bundle of `max_cuts` cuts; by itself it takes no fewer than `fewest_cuts`."""

    max_cuts: int
    fewest_cuts: ClassVar[int] = 20

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        return {**super().decided(plan), "max_cuts": self.max_cuts}

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


_LARGEST = 1e150  # its square is a number


def check_weights(statistics: Statistics, options: TrainOptions) -> None:
    """Raise BadInputError when all rows, or all of one class, have weight 0, and when weighted sums would overflow; UsageError
    where `bias` makes them overflow."""
    _check_size(statistics, options)
    if statistics.weight_sum is None:
        return
    if statistics.weight_sum == 0.0:
        raise BadInputError("all rows have weight 0: there is nothing to learn from; check the weights")
    classes = dict(statistics.label_weights or {}) if options.chosen_task in ("binary", "multiclass") else {}
    positive = options.positive_label
    if positive is not None and positive in classes:  # all other labels are one class
        classes = {positive: classes.pop(positive), math.nan: math.fsum(classes.values())}
    for label, weight in classes.items():
        if weight == 0.0:
            which = f"label {label:g}" if label == label else f"a label other than {positive:g}"
            raise BadInputError(f"all rows with {which} have weight 0: there is nothing to learn from; check the weights")


def _check_size(statistics: Statistics, options: TrainOptions) -> None:
    weight = float(statistics.n_rows) if statistics.weight_sum is None else statistics.weight_sum
    factor = max(1.0, options.C or 1.0) * max(1.0, options.positive_weight)
    if options.bias > max(1.0, statistics.max_abs_value) and factor * weight * options.bias > _LARGEST:
        raise UsageError(f"bias: {options.bias:g} for {statistics.n_rows:,} rows makes sums that overflow; choose a smaller one")
    if factor * weight * max(1.0, statistics.max_abs_value) > _LARGEST:
        raise BadInputError(
            f"row weights that add up to {weight:g} and values up to {statistics.max_abs_value:g}, with C {options.C:g}, make "
            "sums that overflow; scale the weights or the values down"
        )


run_log = logging.getLogger("streamcut.run")
_SIZES = ("max_cuts", "budget", "samples")  # options that increase memory
_SIZES_GIVEN = ("nystroem", "fourier", "row_cache", "kernel_cache")  # and those whose default is the minimum
Planned = Callable[[Job], MemoryPlan]


def smallest_change(job: Job, planned: Planned, *, threads: bool) -> tuple[Job, MemoryPlan]:
    """The first of `job` and its smaller variants whose plan fits, and that plan.

    `threads`: fewer threads are allowed.

    Raises MemoryBudgetError with the minimum.
    """
    for smaller, without in job.smaller():
        # fewer threads first, so that the number of processors decides nothing else
        for workers in range(job.workers, 0, -1) if threads else [job.workers]:
            fitting = smaller if workers == job.workers else replace(smaller, workers=workers)
            try:
                plan = planned(fitting)
            except MemoryBudgetError as error:
                refused = error
                continue
            if without:
                run_log.info("memory: %s", without)
            if workers < job.workers:
                run_log.info("memory: %d threads instead of %d", workers, job.workers)
            return fitting, plan
    raise refused


def lowerable(options: TrainOptions, job: Job, workers: int) -> tuple[str, ...]:
    """The options that can be lowered so that `job` takes less memory; columns, say, have no bundle."""
    names = [name for name in _SIZES if options.has(name) and (name != "max_cuts" or isinstance(job, BundleJob))]
    names += [name for name in _SIZES_GIVEN if getattr(options, name) != TrainOptions.__dataclass_fields__[name].default]
    return tuple(f"--{name.replace('_', '-')}" for name in [*names, *["workers"] * (workers > 1)])


def with_all_features(model: Model, data: OccurringDataset) -> Model:
    """`model`, linear or with a kernel, trained on `data`: weights, slopes of proofs and vectors are 0 for features that
    `data` leaves out."""
    if not isinstance(model, LinearModel):
        import scipy.sparse as sp  # the import takes 0.1 s, which linear models can avoid

        model = cast("KernelModel", model)
        kernel, support, index = model.kernel, model.support, data.index
        if kernel.centre is not None:
            kernel = replace(kernel, centre=replace(kernel.centre, index=index[kernel.centre.index].astype(np.int64)))
        shape = support.shape[0], data.inner.manifest.statistics.n_features
        support = sp.csr_array((support.data, index[support.indices], support.indptr), shape=shape)
        return replace(model, kernel=kernel, support=support)
    columns = model.weights.size // len(data.index)
    model = replace(model, weights=data.spread(model.weights))
    columns = columns if len(model.proofs) == 1 else 1  # of the one problem of all classes, in which a bias feature is last
    spread = (replace(proof, a=data.spread(proof.a.reshape(-1, columns)).reshape(-1)) for proof in model.proofs)
    return replace(model, proofs=tuple(spread))
