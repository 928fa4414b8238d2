"""Several classes, each against the rest, linear: by bundle-dca, OCAS or CPA, all classes in the same passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import ROW_BLOCK, PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer
from streamcut.jobs.ovr_groups import GroupsTrainer
from streamcut.jobs.several_classes import ClassesJob, Proved, multiclass_model, several_labels
from streamcut.losses import row_loss
from streamcut.losses.classes import OneVsRest
from streamcut.models.certificate import Certificate, StopReason, Witness
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.dual.ovr import ORDER, OvrDualOracle
from streamcut.oracles.dual.ovr_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers import ovr
from streamcut.solvers.ovr import ClassLine, OvrSolution
from streamcut.solvers.progress import Iteration


@dataclass(frozen=True)
class OvrJob(ClassesJob):
    """A ClassesJob of a loss of two classes for each class. `group`: at most so many of them are trained at a time; None: all."""

    risk: OneVsRest
    group: int | None = None
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
    def at_once(self) -> int:
        return self.risk.classes if self.group is None else self.group

    def in_groups(self) -> Iterator[OvrJob]:
        """The same in as few groups of classes as can be, then in more and more of them, each of which takes less memory."""
        yield self
        last = K = self.risk.classes
        for groups in range(2, K + 1):
            if (size := -(-K // groups)) < last:
                yield replace(self, group=size)
            last = size

    @property
    def groups(self) -> list[range]:
        """The classes of each group, of nearly the same number."""
        K = self.risk.classes
        count = -(-K // self.at_once)
        bounds = [-(-K * group // count) for group in range(count + 1)]
        return [range(first, stop) for first, stop in pairwise(bounds)]

    @property
    def share_bytes(self) -> int:
        return np.dtype(self.risk.loss.code_type).itemsize

    def rows_scored(self, manifest: Manifest) -> int:
        """OCAS has scores of a block, both have losses for the line search."""
        return min(manifest.statistics.n_rows, max(ROW_BLOCK, *(shard.rows for shard in manifest.shards)))

    def row_bytes(self, classes: int) -> int:
        return row_bytes(classes)

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        known = super().identity(fingerprint, plan)
        return known if self.group is None else {**known, "classes_at_once": self.group}

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer | GroupsTrainer:
        cuts, method, manifest = self.cuts(plan), self.solver.algorithm("one-vs-rest"), runner.feed.data.manifest
        if self.group is not None:
            oracle_of, model_of = partial(self._oracle, runner, plan), partial(self._model, manifest=manifest)
            features = manifest.statistics.n_features + (self.options.bias != 0.0)
            return GroupsTrainer(oracle_of, self.groups, method, cuts, features, model_of, self.origins, self.options.l1)
        oracle = self._oracle(runner, plan)
        begin = None if self.origins is None else partial(method.begin, oracle, cuts, origins=self.origins)
        model = partial(self._model_at_once, oracle=oracle, manifest=manifest)
        return Trainer(oracle, partial(ovr.solve, oracle, method=method, cuts=cuts), model, begin, self.options.l1)

    def _oracle(self, runner: PassRunner, plan: MemoryPlan, classes: range | None = None) -> OvrOracle:
        """Of these classes; None: all."""
        options, risk = self.options, self.risk if classes is None else self.risk.part(classes)
        common: dict[str, Any] = {"C": options.C, "bias": options.bias}
        if self.solver.dual:
            return OvrDualOracle(runner, risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
        return OvrOracle(runner, risk, **common)

    def _model_at_once(self, solution: OvrSolution, C: float, *, oracle: OvrOracle, manifest: Manifest) -> MulticlassModel:
        classes = solution.state.classes
        lines = [ClassLine.of(own, reason) for own, reason in zip(classes, solution.reasons, strict=True)]
        W = np.stack([own.best.w for own in classes], axis=1)
        witnesses = tuple(own.witness for own in classes)
        return self._model(W, lines, witnesses, solution.history, C, c_bar=oracle.c_bar, l1=oracle.penalty.l1, manifest=manifest)

    def _model(
        self, W: np.ndarray, lines: list[ClassLine], witnesses: tuple[Witness, ...], history: list[Iteration], C: float, *,
        c_bar: float, l1: float, manifest: Manifest,
    ) -> MulticlassModel:  # fmt: skip
        options = self.options
        asked = c_bar, options.tol, options.tol_relative
        certificates = tuple(
            Certificate(line.primal, line.bound, *asked, line.converged, StopReason(line.reason), raised=line.raised)
            for line in lines
        )
        found = Proved(W, certificates, witnesses, history)
        return multiclass_model(found, options, self.risk.labels, manifest, C=C, l1=l1)
