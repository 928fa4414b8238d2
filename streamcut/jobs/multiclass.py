"""Several classes at once, the Crammer-Singer loss, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from streamcut.bundle.bundle import BundleSize
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer, certificate
from streamcut.jobs.several_classes import ClassesJob, multiclass_model
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.dual.crammer_singer import ORDER, MulticlassDualOracle
from streamcut.oracles.dual.crammer_singer_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.solvers import bundle_dca, cpa, ocas
from streamcut.solvers.progress import Progress, Solution


@dataclass(frozen=True)
class MulticlassJob(ClassesJob):
    """A ClassesJob of the Crammer-Singer loss."""

    order: ClassVar[RandomOrder] = ORDER

    def rows_scored(self, manifest: Manifest) -> int:
        return max(shard.rows for shard in manifest.shards) if self.solver == "cpa" else 0

    def row_bytes(self, classes: int) -> int:
        return row_bytes(classes)

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        """For one C after another."""
        common = {"C": self.options.C, "bias": self.options.bias}
        oracle: Any  # what bundle-dca takes for its DualOracle has the same methods
        if self.solver == "bundle-dca":
            size, sweeps = self.cache(runner.feed.data.manifest, plan), self.options.sweeps
            cuts = BundleSize(self.max_cuts, max(self.max_cuts, plan.max_cuts))
            oracle = MulticlassDualOracle(runner, self.risk, **common, cuts=cuts, size=size, sweeps=sweeps)
            solve = partial(bundle_dca.solve, oracle, cuts=cuts)
        elif self.solver == "cpa":
            oracle = MulticlassOracle(runner, self.risk, **common, keep_margins=False)
            solve = partial(cpa.solve, oracle, max_cuts=self.max_cuts)
        else:
            oracle = MulticlassOracle(runner, self.risk, **common, keep_margins=True)
            solve = partial(ocas.solve, oracle, max_cuts=self.max_cuts, cut=self.options.cut)
        model = partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest, row_cache=plan.row_cache)
        return Trainer(oracle, solve, model)

    def _model(
        self, solution: Solution, C: float, *, oracle: MulticlassOracle, manifest: Manifest, row_cache: int
    ) -> MulticlassModel:
        options = replace(self.options, C=C, lanes=len(self.lanes))
        W = solution.w.reshape(-1, self.risk.classes)
        certificates = (certificate(solution, oracle.c_bar, options),)
        model = multiclass_model(W, options, self.risk.labels, certificates, self.solver, solution.history, manifest)
        fixed = {"row_cache": f"{row_cache}B"} if self.solver == "bundle-dca" else {}
        return replace(model, parameters={**model.parameters, **fixed})
