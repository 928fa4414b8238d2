"""Several classes, each against the rest, hinge loss, linear: by cutting planes, all classes in the same passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.rest_oracle import RestOracle
from streamcut.execution.runner import ROW_BLOCK, PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Needs
from streamcut.jobs.linear import bundle_size, on_few_rows, threads_wanted
from streamcut.jobs.multiclass import multiclass_model, several_labels
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.model import Model
from streamcut.risks.crammer_singer import CrammerSinger
from streamcut.solvers import one_against_rest
from streamcut.solvers.progress import Progress


@dataclass(frozen=True)
class RestJob:
    """What is to be computed. Of the risk only the labels are used."""

    options: TrainOptions
    risk: CrammerSinger
    max_cuts: int
    lanes: Lanes
    workers: int
    distributable: ClassVar[bool] = True
    task: ClassVar[str] = "multiclass"

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        labels = several_labels(statistics)
        if options.chosen_solver != "ocas" or options.cut != "predicted":
            raise UsageError("strategy: one-against-rest has solver ocas with predicted cuts only; leave solver and cut out")
        if options.target is not None:
            raise UsageError("target: one-against-rest has an objective for each class, not one; leave it out")
        if len(labels) == 2:
            raise UsageError("strategy: with two classes, one against the rest is task binary; use that")
        max_cuts = options.max_cuts or bundle_size((statistics.n_features + (options.bias != 0.0)) * len(labels))
        lanes = plan_lanes(statistics, options.lanes)
        return cls(options, CrammerSinger(labels), max_cuts, lanes, min(threads_wanted(options), len(lanes)))

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight, two margins for each class. Blocks of rows have scores, and losses for the line search."""
        statistics, K = manifest.statistics, self.risk.classes
        block = min(statistics.n_rows, max(ROW_BLOCK, *(shard.rows for shard in manifest.shards)))
        return Needs(
            dimension=(statistics.n_features + (self.options.bias != 0.0)) * K,
            max_cuts=self.max_cuts,
            row_bytes=4 + 16 * K + 8 * (statistics.weight_sum is not None),
            per_worker=((f"scores of rows at work, {K} classes", 8 * K * block),),
        )

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        chosen = {name: getattr(self.options, name) for name in ("C", "bias", "tol", "tol_relative", "strategy")}
        return {"data": fingerprint, "solver": "ocas", "max_cuts": self.max_cuts, "lanes": len(self.lanes), **chosen}

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        options = self.options
        oracle = RestOracle(runner, self.risk, C=options.C, bias=options.bias)
        solution = one_against_rest.solve(oracle, progress, max_cuts=self.max_cuts)
        certificates = tuple(
            Certificate(c.F_b, c.bound, oracle.c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason)
            for c, reason in zip(solution.classes, solution.reasons, strict=True)
        )
        W = np.stack([c.w_b for c in solution.classes], axis=1)
        manifest = runner.feed.data.manifest
        return multiclass_model(W, options, self.risk.labels, certificates, "ocas", progress.history, manifest)

    def warm_up(self, manifest: Manifest) -> None:
        y = np.resize(self.risk.labels, 8)
        on_few_rows(manifest, y, self.workers, replace(self, max_cuts=4).solve)
