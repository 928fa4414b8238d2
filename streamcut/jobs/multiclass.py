"""Several classes at once, the Crammer-Singer loss, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer, certificate, solver_of
from streamcut.jobs.several_classes import ClassesJob, multiclass_model
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.dual.crammer_singer import ORDER, MulticlassDualOracle
from streamcut.oracles.dual.crammer_singer_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.solvers.progress import Progress, Solution


@dataclass(frozen=True)
class MulticlassJob(ClassesJob):
    """A ClassesJob of the Crammer-Singer loss."""

    order: ClassVar[RandomOrder] = ORDER

    def rows_scored(self, manifest: Manifest) -> int:
        return max(shard.rows for shard in manifest.shards) if not self.solver.margins else 0

    def row_bytes(self, classes: int) -> int:
        return row_bytes(classes)

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        """For one C after another."""
        common: dict[str, Any] = {"C": self.options.C, "bias": self.options.bias}
        oracle: Any  # what bundle-dca takes for its DualOracle has the same methods
        if self.solver.dual:
            oracle = MulticlassDualOracle(runner, self.risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
            solve = solver_of(self.options, oracle, cuts=self.cuts(plan))
        else:
            oracle = MulticlassOracle(runner, self.risk, **common, keep_margins=self.solver.margins)
            solve = solver_of(self.options, oracle, max_cuts=self.max_cuts)
        model = partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest, row_cache=plan.row_cache)
        return Trainer(oracle, solve, model)

    def _model(
        self, solution: Solution, C: float, *, oracle: MulticlassOracle, manifest: Manifest, row_cache: int
    ) -> MulticlassModel:
        options = replace(self.options, C=C, lanes=len(self.lanes))
        W = solution.w.reshape(-1, self.risk.classes)
        certificates = (certificate(solution, oracle.c_bar, options),)
        model = multiclass_model(W, options, self.risk.labels, certificates, options.chosen_solver, solution.history, manifest)
        fixed = {"row_cache": f"{row_cache}B"} if self.solver.dual else {}
        return replace(model, parameters={**model.parameters, **fixed})
