"""Several classes at once, the Crammer-Singer loss, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.multiclass_cache import row_bytes
from streamcut.execution.multiclass_dual import MulticlassDualOracle, room_bytes
from streamcut.execution.multiclass_oracle import MulticlassOracle
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.job import Needs
from streamcut.jobs.linear import Trainer, bundle_size, certificate, on_few_rows, threads_wanted
from streamcut.models.certificate import Certificate
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.risks.crammer_singer import CrammerSinger
from streamcut.solvers import bundle_dca, cpa, ocas
from streamcut.solvers.progress import Iteration, Progress, Solution
from streamcut.units import parse_size

_DCA_LANE_WORK = 1 << 25  # entries × classes; the number of lanes decides which bits come out, so it is not that of threads
_DCA_LANES = 4
_DCA_VECTORS = 8  # dense ones of a worker of bundle-dca: W′, two cuts, those known, a lane ahead, two for sweeps over cached rows
_CACHED = 1.0  # of the rows, when memory is plenty: text of many classes takes 2 passes then, 20 with 0.3


@dataclass(frozen=True)
class MulticlassJob:
    """What is to be computed."""

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
        statistics, solver, lanes = manifest.statistics, options.chosen_solver, options.lanes
        labels = several_labels(statistics)
        max_cuts = options.max_cuts or bundle_size((statistics.n_features + (options.bias != 0.0)) * len(labels))
        if solver == "bundle-dca":
            max_cuts = options.max_cuts or bundle_dca.MAX_CUTS
            lanes = lanes or min(_DCA_LANES, max(1, statistics.nnz * len(labels) // _DCA_LANE_WORK))
        chosen = plan_lanes(statistics, lanes)
        return cls(options, CrammerSinger(labels), solver, max_cuts, chosen, min(threads_wanted(options), len(chosen)))

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight, two scores for each class, and the shares of each in the cuts of bundle-dca."""
        statistics, K, dual = manifest.statistics, self.risk.classes, self.solver == "bundle-dca"
        state, own = 0, []
        if self.solver == "cpa":
            block = max(shard.rows for shard in manifest.shards)
            own.append((f"scores of rows at work, {K} classes", 8 * K * block))
        else:
            state = 4 + 16 * K + 8 * (statistics.weight_sum is not None)
        if dual:
            state += 2 * K * self.max_cuts
            own.append(("rows put together", room_bytes(manifest, K)))
        return Needs(
            dimension=(statistics.n_features + (self.options.bias != 0.0)) * K,
            max_cuts=self.max_cuts,
            vectors=_DCA_VECTORS if dual else 1,
            row_bytes=state,
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
            return 0, int(_CACHED * everything)
        size = min(parse_size(text, option="row_cache", total=everything), everything)
        if self._cache(manifest, size) is None:
            raise UsageError(f"row_cache: {text} is too little for a row in each of {len(self.lanes)} lanes; use 0 for none")
        return size, size

    def _cache(self, manifest: Manifest, size: int) -> CacheSize | None:
        return CacheSize.planned(manifest, size, len(self.lanes), row_bytes(self.risk.classes))

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        chosen = {name: getattr(self.options, name) for name in ("C", "cut", "bias", "tol", "tol_relative", "strategy")}
        fixed = {"data": fingerprint, "solver": self.solver, "max_cuts": self.max_cuts, "lanes": len(self.lanes)}
        if self.solver == "bundle-dca":
            fixed |= {"row_cache": plan.row_cache, "sweeps": self.options.sweeps}
        return {**fixed, **chosen}

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        """For one C after another."""
        common = {"C": self.options.C, "bias": self.options.bias}
        oracle: Any  # what bundle-dca takes for its DualOracle has the same methods
        if self.solver == "bundle-dca":
            size = self._cache(runner.feed.data.manifest, plan.row_cache)
            oracle = MulticlassDualOracle(
                runner, self.risk, **common, max_cuts=self.max_cuts, size=size, sweeps=self.options.sweeps
            )
            solve = partial(bundle_dca.solve, oracle, max_cuts=self.max_cuts)
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

    def warm_up(self, manifest: Manifest) -> None:
        y = np.resize(self.risk.labels, 8)
        on_few_rows(manifest, y, self.workers, replace(self, max_cuts=4).solve)


def several_labels(statistics: Statistics) -> tuple[float, ...]:
    """The labels, increasing. Raises BadInputError when there are fewer than two, or too many to be classes."""
    found = statistics.labels
    if found is None:
        raise BadInputError("the data has more than 4096 different labels: these are no classes; choose another --task")
    if len(found) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(found)):g}; training needs two classes")
    return tuple(sorted(found))


def multiclass_model(
    W: np.ndarray,
    options: TrainOptions,
    labels: tuple[float, ...],
    certificates: tuple[Certificate, ...],
    solver: str,
    history: list[Iteration],
    manifest: Manifest,
) -> MulticlassModel:
    """The model with weights W (D, K)."""
    d = manifest.statistics.n_features
    return MulticlassModel(
        weights=W[:d].copy(),
        intercepts=W[d] * options.bias if options.bias else np.zeros(len(labels)),
        bias=float(options.bias),
        labels=labels,
        C=float(options.C),
        strategy=options.strategy,
        certificates=certificates,
        task="multiclass",
        solver=solver,
        history=[asdict(iteration) for iteration in history],
        parameters=options.as_dict(),
        fingerprint=manifest.fingerprint,
    )
