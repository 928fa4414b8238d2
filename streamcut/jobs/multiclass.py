"""Several classes at once, the Crammer-Singer or the softmax loss, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from streamcut.config import TrainOptions
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer, certificate, solver_of
from streamcut.jobs.several_classes import ClassesJob, multiclass_model
from streamcut.losses.classes import ClassesLoss
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.softmax import Softmax
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.dual.crammer_singer import ORDER, MulticlassDualOracle
from streamcut.oracles.dual.crammer_singer_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.softmax import SoftmaxDualOracle
from streamcut.oracles.softmax import SoftmaxOracle
from streamcut.solvers.progress import Progress, Solution


@dataclass(frozen=True)
class MulticlassJob(ClassesJob):
    """A ClassesJob of the Crammer-Singer loss. `oracles` are those without dual ascent, and with it."""

    order: ClassVar[RandomOrder] = ORDER
    oracles: ClassVar[tuple[Any, Any]] = MulticlassOracle, MulticlassDualOracle

    @classmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> ClassesLoss:
        return CrammerSinger(labels)

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
            oracle = self.oracles[1](runner, self.risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
            solve = solver_of(self.options, oracle, cuts=self.cuts(plan))
        else:
            oracle = self.oracles[0](runner, self.risk, **common, keep_margins=self.solver.margins)
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


@dataclass(frozen=True)
class SoftmaxJob(MulticlassJob):
    """A ClassesJob of the softmax loss."""

    oracles: ClassVar[tuple[Any, Any]] = SoftmaxOracle, SoftmaxDualOracle

    @classmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> ClassesLoss:
        return Softmax(labels)
