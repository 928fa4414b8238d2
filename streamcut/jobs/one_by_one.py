"""One class against the rest, one class after another: problems of two classes (streamcut.jobs.binary) by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, cast

import numpy as np

from streamcut.config import TrainOptions
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.shown import by_name
from streamcut.io.manifest import Manifest
from streamcut.jobs.binary import BinaryJob
from streamcut.jobs.linear import multiclass_model, origins, problem_on
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import StopReason
from streamcut.models.linear import LinearModel
from streamcut.solvers.progress import Iteration, Progress
from streamcut.solvers.warm_start import Origin

_TOTALS = ("passes", "seconds", "rows", "nnz", "bytes_read", "bytes_computed")


@dataclass(frozen=True)
class OneByOneJob(BinaryJob):
    """The job of the first class; `classes` are the labels of all, `origins` their starting points."""

    classes: tuple[float, ...] = ()
    origins: tuple[Origin, ...] | None = None

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        problem = problem_on(options, manifest.statistics)
        first = cls.of(replace(options, warm_start=None), manifest, PointwiseRisk.of(problem), problem)
        job = replace(first, options=options, classes=problem.labels or ())
        if options.warm_start is None:
            return job
        return replace(job, origins=origins(options, manifest, job.problem, job._constant(manifest)))

    def of_class(self, number: int) -> BinaryJob:
        """The problem of one class."""
        label, origin = self.classes[number], None if self.origins is None else self.origins[number]
        problem = self.options.problem(task="binary", labels=(self.classes[number == 0], label), rest=True)
        risk = PointwiseRisk.of(problem)
        return BinaryJob(self.options, self.lanes, self.workers, self.max_cuts, risk, problem, self.solver, origin)

    def needs(self, manifest: Manifest) -> Needs:
        """Those of a class, and the weights and proofs of all."""
        needs, K = super().needs(manifest), len(self.classes)
        models = f"weights and proofs of {K} classes", 3 * 8 * needs.dimension * K
        return replace(needs, more=(*needs.more, models))

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        begin = None if self.origins is None else [origin.digest() for origin in self.origins]
        return {**super().decided(plan), "warm_start": begin}

    def trainer(self, runner: Runner, plan: MemoryPlan) -> OneByOneTrainer:
        return OneByOneTrainer(self, runner, plan)


@dataclass(frozen=True)
class OneByOneTrainer:
    """As streamcut.jobs.linear.Trainer, but each C starts from zero."""

    job: OneByOneJob
    runner: Runner
    plan: MemoryPlan

    def train(self, C: float, progress: Progress, *, l1: float | str | None = None, keep: bool = False) -> LinearModel:
        """As Trainer.train. Limits of passes hold for each class, one of time for all; there is a checkpoint per class.

        Raises Interrupted unless the last class has begun.
        """
        job, models, K = self.job, list[LinearModel](), len(self.job.classes)
        keep = keep or progress.checkpoints is not None  # the end of a class is read again by what resumes in a later one
        if progress.checkpoints is not None and progress.checkpoints.stored is None:
            progress.checkpoints.save({"classes": K}, {}, lambda: None)
        for number, label in enumerate(job.classes):
            with ExitStack() as held:
                part, seen = self._progress(number, progress, models), progress.history
                if progress.checkpoints is not None:
                    part.checkpoints = held.enter_context(progress.checkpoints.part(f"class={label:.17g}"))
                trainer = job.of_class(number).trainer(self.runner, self.plan)
                models.append(cast(LinearModel, trainer.train(C, part, l1=l1, keep=keep)))
            progress.history = seen + [_of_all(line, seen, models[:-1], f"{number + 1} of {K}") for line in part.history]
            if models[-1].stop_reason is StopReason.INTERRUPTED and number + 1 < K:
                raise Interrupted
        W = np.stack([np.append(model.weights, [model.intercept] * (job.options.bias != 0.0)) for model in models], axis=1)
        proved, manifest = [(model.certificates[0], model.proofs[0]) for model in models], self.runner.feed.data.manifest
        problem = replace(job.problem, C=float(C), l1=models[0].problem.l1)
        return multiclass_model(job.options, problem, manifest, W, progress.history, proved, 1.0)

    def _progress(self, number: int, all_: Progress, models: list[LinearModel]) -> Progress:
        """The progress of a class, which has its part of the time that is left."""
        rule, seen, K = all_.rule, all_.history, len(self.job.classes)
        if rule.max_time is not None:
            rule = replace(rule, max_time=(rule.max_time - (seen[-1].seconds if seen else 0.0)) / (K - number))
        named, before = partial(_of_all, before=seen, classes=f"{number + 1} of {K}"), tuple(models)
        observe = all_.observe
        return Progress(rule, observe and (lambda line: observe(named(line, models=before))), stop=all_.stop)


def _of_all(line: Iteration, before: list[Iteration], models: Sequence[LinearModel], classes: str) -> Iteration:
    """An iteration of a class as one of all: after those `before`, with the sums of the `models` that there are."""
    primal = line.primal + sum(model.certificates[0].primal for model in models)
    bound = line.lower_bound + sum(model.certificates[0].lower_bound for model in models)
    here, last = by_name(line), by_name(before[-1]) if before else dict.fromkeys(_TOTALS, 0)
    totals = {name: here[name] + last[name] for name in _TOTALS}
    summed = replace(line, iteration=len(before) + line.iteration, primal=primal, lower_bound=bound, gap=primal - bound)
    return replace(summed, **totals, allowed_gap=0.0, waits_for="", classes=classes)
