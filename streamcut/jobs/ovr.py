"""Several classes, each against the rest, linear: by bundle-dca, OCAS or CPA, all classes in the same passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import ROW_BLOCK, PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.several_classes import ClassesJob, multiclass_model, several_labels
from streamcut.losses import row_loss
from streamcut.losses.classes import OneVsRest
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.model import Model
from streamcut.oracles.dual.ovr import ORDER, OvrDualOracle
from streamcut.oracles.dual.ovr_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers import ovr
from streamcut.solvers.progress import Progress


@dataclass(frozen=True)
class OvrJob(ClassesJob):
    """A ClassesJob of a loss of two classes for each class."""

    risk: OneVsRest
    order: ClassVar[RandomOrder] = ORDER

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        if options.target is not None:
            raise UsageError("target: one-vs-rest has an objective for each class, not one; leave it out")
        if len(several_labels(manifest.statistics)) == 2:
            raise UsageError("strategy: with two classes, one-vs-rest is task binary; use that")
        return super().planned(options, manifest)

    @classmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> OneVsRest:
        return OneVsRest(labels, row_loss(options.chosen_loss, options.as_dict()))

    @property
    def margins(self) -> bool:
        return True

    @property
    def share_bytes(self) -> int:
        return np.dtype(self.risk.loss.code_type).itemsize

    def rows_scored(self, manifest: Manifest) -> int:
        """OCAS has scores of a block, both have losses for the line search."""
        return min(manifest.statistics.n_rows, max(ROW_BLOCK, *(shard.rows for shard in manifest.shards)))

    def row_bytes(self, classes: int) -> int:
        return row_bytes(classes)

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        options, manifest = self.options, runner.feed.data.manifest
        common: dict[str, Any] = {"C": options.C, "bias": options.bias}
        oracle: OvrOracle
        if self.solver.dual:
            oracle = OvrDualOracle(runner, self.risk, **common, **self.dual_options(manifest, plan))
        else:
            oracle = OvrOracle(runner, self.risk, **common)
        solution = ovr.solve(oracle, progress, self.solver.algorithm("one-vs-rest"), self.cuts(plan))
        certificates = tuple(
            Certificate(c.F_b, c.bound, oracle.c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason)
            for c, reason in zip(solution.classes, solution.reasons, strict=True)
        )
        W = np.stack([c.w_b for c in solution.classes], axis=1)
        return multiclass_model(W, options, self.risk.labels, certificates, options.chosen_solver, progress.history, manifest)
