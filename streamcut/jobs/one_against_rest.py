"""Several classes, each against the rest, hinge loss, linear: by bundle-dca or OCAS, all classes in the same passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.rest_cache import row_bytes
from streamcut.execution.rest_dual import RestDualOracle, room_bytes
from streamcut.execution.rest_oracle import RestOracle
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import ROW_BLOCK, PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Needs
from streamcut.jobs.linear import bundle_size, on_few_rows, threads_wanted
from streamcut.jobs.multiclass import multiclass_model, several_labels
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.model import Model
from streamcut.risks.crammer_singer import CrammerSinger
from streamcut.solvers import bundle_dca, one_against_rest, one_against_rest_dca, one_against_rest_ocas
from streamcut.solvers.progress import Progress
from streamcut.units import parse_size

_DCA_LANE_WORK = 1 << 25  # entries × classes; the number of lanes decides which bits come out, so it is not that of threads
_DCA_LANES = 4
_DCA_VECTORS = 8  # dense ones of a worker of bundle-dca: w′, two cuts, those known, a lane ahead, two for sweeps over cached rows


@dataclass(frozen=True)
class RestJob:
    """What is to be computed. Of the risk only the labels are used."""

    options: TrainOptions
    risk: CrammerSinger
    solver: str
    max_cuts: int
    lanes: Lanes
    workers: int
    distributable: ClassVar[bool] = True
    task: ClassVar[str] = "multiclass"

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        labels = several_labels(statistics)
        solver, lanes, dimension = options.chosen_solver, options.lanes, statistics.n_features + (options.bias != 0.0)
        if solver == "cpa" or options.cut != "predicted":
            raise UsageError("strategy: one-against-rest has solvers bundle-dca, and ocas with predicted cuts; take one of them")
        if options.target is not None:
            raise UsageError("target: one-against-rest has an objective for each class, not one; leave it out")
        if len(labels) == 2:
            raise UsageError("strategy: with two classes, one against the rest is task binary; use that")
        max_cuts = options.max_cuts or bundle_size(dimension * len(labels))
        if solver == "bundle-dca":
            max_cuts = options.max_cuts or bundle_dca.MAX_CUTS
            lanes = lanes or min(_DCA_LANES, max(1, statistics.nnz * len(labels) // _DCA_LANE_WORK))
        chosen = plan_lanes(statistics, lanes)
        return cls(options, CrammerSinger(labels), solver, max_cuts, chosen, min(threads_wanted(options), len(chosen)))

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight, two margins for each class, and its shares in the cuts of bundle-dca.

        For OCAS, blocks of rows have scores; both have losses for the line search.
        """
        statistics, K, dual = manifest.statistics, self.risk.classes, self.solver == "bundle-dca"
        block = min(statistics.n_rows, max(ROW_BLOCK, *(shard.rows for shard in manifest.shards)))
        own = [(f"scores of rows at work, {K} classes", 8 * K * block)]
        if dual:
            own.append(("rows put together", room_bytes(manifest, K)))
        return Needs(
            dimension=(statistics.n_features + (self.options.bias != 0.0)) * K,
            max_cuts=self.max_cuts,
            vectors=_DCA_VECTORS if dual else 1,
            row_bytes=4 + 16 * K + 8 * (statistics.weight_sum is not None) + 2 * K * self.max_cuts * dual,
            row_cache=self._cache_wanted(manifest),
            per_worker=tuple(own),
        )

    def _cache_wanted(self, manifest: Manifest) -> tuple[int, int]:
        """(least, most) bytes of the row cache."""
        text = self.options.row_cache
        if self.solver != "bundle-dca" or self.options.sweeps == 0 or text == "0":
            return 0, 0
        everything = CacheSize.bytes_of_all(manifest, row_bytes(self.risk.classes))
        if text == "auto":
            return 0, everything
        size = min(parse_size(text, option="row_cache", total=everything), everything)
        if self._cache(manifest, size) is None:
            raise UsageError(f"row_cache: {text} is too little for a row in each of {len(self.lanes)} lanes; use 0 for none")
        return size, size

    def _cache(self, manifest: Manifest, size: int) -> CacheSize | None:
        return CacheSize.planned(manifest, size, len(self.lanes), row_bytes(self.risk.classes))

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        chosen = {name: getattr(self.options, name) for name in ("C", "bias", "tol", "tol_relative", "strategy")}
        fixed = {"data": fingerprint, "solver": self.solver, "max_cuts": self.max_cuts, "lanes": len(self.lanes)}
        if self.solver == "bundle-dca":
            fixed |= {"row_cache": plan.row_cache, "sweeps": self.options.sweeps}
        return {**fixed, **chosen}

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        options, manifest = self.options, runner.feed.data.manifest
        common = {"C": options.C, "bias": options.bias}
        oracle: RestOracle
        method: one_against_rest.Method
        if self.solver == "bundle-dca":
            size, method = self._cache(manifest, plan.row_cache), one_against_rest_dca
            oracle = RestDualOracle(runner, self.risk, **common, max_cuts=self.max_cuts, size=size, sweeps=options.sweeps)
        else:
            oracle, method = RestOracle(runner, self.risk, **common), one_against_rest_ocas
        solution = one_against_rest.solve(oracle, progress, method, max_cuts=self.max_cuts)
        certificates = tuple(
            Certificate(c.F_b, c.bound, oracle.c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason)
            for c, reason in zip(solution.classes, solution.reasons, strict=True)
        )
        W = np.stack([c.w_b for c in solution.classes], axis=1)
        return multiclass_model(W, options, self.risk.labels, certificates, self.solver, progress.history, manifest)

    def warm_up(self, manifest: Manifest) -> None:
        y = np.resize(self.risk.labels, 8)
        on_few_rows(manifest, y, self.workers, replace(self, max_cuts=4).solve)
