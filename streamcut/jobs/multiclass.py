"""Several classes in one problem with a joint loss, linear, by bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import identity
from streamcut.jobs.linear import (
    Trainer,
    cache_wanted,
    certificate,
    penalty_needs,
    solver_of,
    threads_wanted,
)
from streamcut.jobs.origins import classes_origins
from streamcut.jobs.several_classes import multiclass_model, several_labels
from streamcut.losses import joint_loss
from streamcut.losses.classes import ClassesRisk
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.oracles.dual.classes import ORDER, MulticlassDualOracle, row_bytes
from streamcut.solver_table import SolverRecord
from streamcut.solvers import warm_start
from streamcut.solvers.progress import Progress, Solution
from streamcut.solvers.warm_start import Origin

_SHARE = 2  # bytes of a row's dual variable, per class and cut
_LONG = 1 << 22  # numbers in the vectors of all classes: 16 such vectors take 512 MiB
_FEW_CUTS = 8  # for longer ones: sector takes 6 passes one-vs-rest, as with 16
_CACHED = 1.0  # of the rows, when memory is plentiful: text of many classes then takes 2 passes, 20 with 0.3


@dataclass(frozen=True)
class MulticlassJob:
    """The problem; see streamcut.jobs.job.Job.

    origin  the starting point; None for zero
    """

    options: TrainOptions
    risk: ClassesRisk
    solver: SolverRecord
    max_cuts: int
    lanes: Lanes
    workers: int
    origin: Origin | None = None
    distributable: ClassVar[bool] = True
    task: ClassVar[str] = "multiclass"

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics, solver = manifest.statistics, options.record
        labels = several_labels(statistics)
        dimension = (statistics.n_features + (options.bias != 0.0)) * len(labels)
        max_cuts = options.max_cuts or (_FEW_CUTS if dimension > _LONG else solver.max_cuts)
        assert max_cuts is not None
        chosen = plan_lanes(statistics, options.lanes or 1)  # passes of one lane are accelerated
        origin = None if options.warm_start is None else classes_origins(options, manifest, labels, options.bias)[0]
        workers = min(threads_wanted(options), len(chosen))
        return cls(options, ClassesRisk(labels, joint_loss(options.problem)), solver, max_cuts, chosen, workers, origin)

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight, two scores per class, and each class's shares in the cuts of bundle-dca."""
        statistics, K, solver = manifest.statistics, self.risk.classes, self.solver
        known = 4 + 8 * (statistics.weight_sum is not None)
        dimension = (statistics.n_features + (self.options.bias != 0.0)) * K
        return Needs(
            dimension=dimension,
            max_cuts=self.max_cuts,
            vectors=solver.vectors,
            row_bytes=16 * K + known + _SHARE * K * self.max_cuts,
            more=penalty_needs(self.options, dimension),
            row_cache=cache_wanted(self.options, manifest, self.lanes, part=_CACHED, row_bytes=row_bytes(K)),
            per_worker=(("rows of a group", ORDER.room_bytes(statistics, K)),),
            block_rows=ORDER.batch_rows(statistics),
        )

    def cache(self, manifest: Manifest, plan: MemoryPlan) -> CacheSize | None:
        """The size of a lane's row cache."""
        return CacheSize.planned(manifest, plan.row_cache, len(self.lanes), row_bytes(self.risk.classes))

    def dual_options(self, manifest: Manifest, plan: MemoryPlan) -> dict[str, Any]:
        """Additional arguments of dual-ascent oracles."""
        own = {"cuts": self.max_cuts, "size": self.cache(manifest, plan)}
        return {**own, "sweeps": self.options.sweeps, "seed": self.options.seed}

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        found = {"max_cuts": self.max_cuts, "lanes": len(self.lanes), "row_cache": plan.row_cache}
        begin = None if self.origin is None else [self.origin.digest()]
        return identity(self.options, fingerprint, **found, warm_start=begin)

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    def trainer(self, runner: Runner, plan: MemoryPlan) -> Trainer:
        options, origin = self.options, self.origin
        common: dict[str, Any] = {"C": options.C, "bias": options.bias}
        oracle = MulticlassDualOracle(runner, self.risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
        begin = None if origin is None else partial(warm_start.dual, origin, oracle, self.max_cuts)
        solve = solver_of(options, oracle, max_cuts=self.max_cuts)
        model = partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest, row_cache=plan.row_cache)
        return Trainer(oracle, solve, model, begin, options.l1)

    def _model(
        self, solution: Solution, C: float, *, oracle: MulticlassDualOracle, manifest: Manifest, row_cache: int
    ) -> LinearModel:
        options, W = self.options, solution.w.reshape(-1, self.risk.classes).copy()  # the next of a path takes solution.w over
        proved = [(certificate(solution, oracle, options), solution.witness)]
        fixed: dict[str, Any] = {"lanes": len(self.lanes), "row_cache": f"{row_cache}B"}
        rest: dict[str, Any] = {"C": C, "l1": oracle.penalty.l1, "constant": options.bias}
        return multiclass_model(options, manifest, W, solution.history, self.risk.labels, proved, **rest, **fixed)
