"""Several classes, each against the rest, linear: by bundle-dca, OCAS or CPA, all classes in the same passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import ROW_BLOCK, PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer
from streamcut.jobs.several_classes import ClassesJob, Proved, multiclass_model, several_labels
from streamcut.losses import row_loss
from streamcut.losses.classes import OneVsRest
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.dual.ovr import ORDER, OvrDualOracle
from streamcut.oracles.dual.ovr_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers import ovr
from streamcut.solvers.ovr import OvrSolution


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

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        options, cuts, method = self.options, self.cuts(plan), self.solver.algorithm("one-vs-rest")
        common: dict[str, Any] = {"C": options.C, "bias": options.bias}
        oracle: OvrOracle
        if self.solver.dual:
            oracle = OvrDualOracle(runner, self.risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
        else:
            oracle = OvrOracle(runner, self.risk, **common)
        begin = None if self.origins is None else partial(method.begin, oracle, cuts, origins=self.origins)
        model = partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest)
        return Trainer(oracle, partial(ovr.solve, oracle, method=method, cuts=cuts), model, begin, options.l1)

    def _model(self, solution: OvrSolution, C: float, *, oracle: OvrOracle, manifest: Manifest) -> MulticlassModel:
        options, classes = self.options, solution.state.classes
        asked = oracle.c_bar, options.tol, options.tol_relative
        certificates = tuple(
            Certificate(c.F_b, c.bound, *asked, reason is StopReason.CONVERGED, reason, raised=c.raised)
            for c, reason in zip(classes, solution.reasons, strict=True)
        )
        W = np.stack([c.w_b for c in classes], axis=1)
        found = Proved(W, certificates, tuple(c.witness for c in classes), solution.history)
        return multiclass_model(found, options, self.risk.labels, manifest, C=C, l1=oracle.penalty.l1)
