"""Two classes, or numbers as targets, a loss of single rows, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs, Streamed
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import identity
from streamcut.jobs.linear import (
    Trainer,
    bundle_size,
    cache_wanted,
    certificate,
    constant_feature,
    linear_model,
    penalty_needs,
    problem_on,
    solver_of,
    threads_wanted,
)
from streamcut.jobs.origins import origins
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.oracles.chosen_columns import OF_ROWS, ColumnsOracle, entry_bytes
from streamcut.oracles.dual.ascent import ORDER, DualOracle
from streamcut.oracles.dual.interior import solving_bytes
from streamcut.oracles.dual.loss_cache import row_bytes
from streamcut.oracles.dual.random_order import STREAMS, RandomOrder
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import row_arrays
from streamcut.oracles.second_order import SecondOrderOracle
from streamcut.problem import Problem
from streamcut.solver_table import SolverRecord
from streamcut.solvers import warm_start
from streamcut.solvers.progress import Progress, Solution, StoppingRule
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin

_DCA_LANE_NNZ = 1 << 24
_COLUMNS = 64  # in memory at least, if every row had an entry in each
_CACHED = 0.3  # of the rows, when memory is plentiful and the rows are few
_SMALL = 4 << 20  # bytes of all rows: their cache then holds them all, as a sweep that stays in the processor costs little
_FEW, _OF_MANY = 128 << 20, 0.1  # on 3 million rows of text, 10 % takes as many passes as 30 %, in three quarters of the time


@dataclass(frozen=True)
class BinaryJob:
    """A linear model of single rows.

    `origin`: the starting point, None for zero. `max_cuts`: size of the bundle. Rows are visited in `order`.
    """

    options: TrainOptions
    risk: PointwiseRisk
    problem: Problem
    solver: SolverRecord
    max_cuts: int
    lanes: Lanes
    workers: int
    origin: Origin | None = None
    order: RandomOrder = ORDER
    distributable: ClassVar[bool] = True

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        problem = problem_on(options, manifest.statistics)
        return cls.of(options, manifest, PointwiseRisk.of(problem), problem)

    @classmethod
    def of(cls, options: TrainOptions, manifest: Manifest, risk: PointwiseRisk, problem: Problem) -> Self:
        """The job for this risk."""
        statistics = manifest.statistics
        solver, threads, lanes = options.record, threads_wanted(options), options.lanes
        dimension = statistics.n_features + (options.bias != 0.0)
        max_cuts = options.max_cuts or solver.max_cuts or bundle_size(dimension)
        if solver.dual:  # lanes don't see each other's steps: at most one per thread, a single one for little data
            lanes = lanes or min(threads, max(1, statistics.nnz // _DCA_LANE_NNZ))
        chosen = plan_lanes(statistics, lanes)
        if solver.dual and options.lanes is None and options.l1 == 0.0:  # two double the passes
            chosen = plan_lanes(statistics, 1)
        constant = constant_feature(options, statistics, risk.loss.unbounded())
        origin = None if options.warm_start is None else origins(options, manifest, problem, constant)[0]
        return cls(options, risk, problem, solver, max_cuts, chosen, min(threads, len(chosen)), origin, ORDER)

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: two margins, a weight unless all are 1, and the shares in the cuts of bundle-dca."""
        statistics, solver, loss = manifest.statistics, self.solver, self.risk.loss
        if solver.columns:
            return self._needs_of_columns(manifest)
        in_cache = self._cached_row(manifest)
        everything = CacheSize.bytes_of_all(manifest, in_cache)
        cached = 1.0 if CacheSize.bytes_of_all(manifest) <= _SMALL else max(_OF_MANY, min(_CACHED, _FEW / everything))
        numbers = row_arrays(self.risk, statistics.weight_sum is not None, keep_margins=solver.margins)
        share, dimension = np.dtype(loss.code_type).itemsize, statistics.n_features + (self.options.bias != 0.0)
        in_rows = 8 * len(numbers) + share * self.max_cuts * solver.dual
        return Needs(
            dimension=dimension,
            max_cuts=self.max_cuts,
            vectors=solver.vectors,
            row_bytes=in_rows,
            more=(
                *penalty_needs(self.options, dimension),
                *[("curvature of the loss", 4 * 8 * dimension**2)] * solver.curved,
            ),
            row_cache=cache_wanted(self.options, manifest, self.lanes, part=cached, row_bytes=in_cache),
            per_worker=self._per_worker(manifest, dimension),
            mixing=self._mixing(manifest, in_rows),
            block_rows=self.order.batch_rows(statistics) if solver.dual else 1,
        )

    def _needs_of_columns(self, manifest: Manifest) -> Needs:
        """Row state, what solving takes per row, and columns: at least some, at most all."""
        statistics, least, everything = manifest.statistics, *self._rooms(manifest)
        weighted, dimension = statistics.weight_sum is not None, statistics.n_features + (self.options.bias != 0.0)
        more = ("rows to solve with", OF_ROWS * statistics.n_rows), ("slopes, counts, columns' numbers", 12 * 8 * dimension)
        return Needs(
            dimension=dimension,
            max_cuts=self.max_cuts,
            vectors=self.solver.vectors,
            row_bytes=8 * len(row_arrays(self.risk, weighted, keep_margins=True)),
            more=(*penalty_needs(self.options, dimension), *more),
            row_cache=(least, everything),
            cached="columns in memory",
            block_rows=1,
        )

    def _rooms(self, manifest: Manifest) -> tuple[int, int]:
        """(least, most) bytes of columns."""
        rows, size = manifest.statistics.n_rows, entry_bytes(manifest)
        everything = size * (manifest.statistics.nnz + rows * (self.options.bias != 0.0))
        return min(everything, _COLUMNS * size * rows), everything

    def _cached_row(self, manifest: Manifest) -> int:
        """Bytes per cached row, without its entries, with what solving for all rows at once takes."""
        return row_bytes(self.risk.loss) + self._solving(manifest)

    def _solving(self, manifest: Manifest) -> int:
        """The part of `_cached_row` that solving takes, in the process that runs the solver."""
        if not self.solver.dual:
            return 0
        dimension = manifest.statistics.n_features + (self.options.bias != 0.0)
        return solving_bytes(self.risk.loss, manifest.statistics, dimension)

    @property
    def _accelerated(self) -> bool:
        """Whether passes are accelerated (streamcut.solvers.acceleration)."""
        return self.solver.dual and len(self.lanes) == 1 and self.options.l1 == 0.0

    def _per_worker(self, manifest: Manifest, dimension: int) -> tuple[tuple[str, int], ...]:
        if self.solver.curved:
            return (("curvature of a lane", 8 * dimension**2),)
        if not self.solver.dual:
            return ()
        return (("order of rows", self.order.mixing_bytes(manifest.statistics)),)

    def _mixing(self, manifest: Manifest, row_bytes: int) -> tuple[Streamed, ...]:
        if not (self.solver.dual and self.order.has_streams(manifest.statistics, self.lanes)):
            return ()
        always = self.risk.loss.smooth or self._accelerated  # for others, plain passes take twice the arithmetic
        spare = threads_wanted(self.options) >= 2 * self.workers
        batches = [self.order.batch >> times for times in range(self.order.batch.bit_length())]
        found = []
        for count, order in product(STREAMS, [replace(self.order, batch=batch) for batch in batches]):
            found.append(Streamed(count, order.stream_bytes(manifest, count, row_bytes, ahead=True), always, spare, order.batch))
        return tuple(found)

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        return identity(
            self.options,
            fingerprint,
            max_cuts=self.max_cuts,
            streams=plan.streamed.streams,
            batch=plan.streamed.batch,
            lanes=len(self.lanes),
            accelerated=self._accelerated,
            row_cache=plan.row_cache,
            positive_label=None if self.problem.labels is None else self.problem.labels[1],
            warm_start=None if self.origin is None else self.origin.digest(),
        )

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    def trainer(self, runner: Runner, plan: MemoryPlan) -> Trainer:
        """A trainer for one C after another."""
        chosen, manifest = self.options, runner.feed.data.manifest
        common: dict[str, Any] = {"C": chosen.C, "bias": self._constant(manifest), "free": chosen.free}
        oracle: LinearOracle
        if self.solver.dual:
            size = CacheSize.planned(manifest, plan.row_cache, len(runner.lanes), self._cached_row(manifest))
            many: dict[str, Any] = {"cuts": self.max_cuts, "size": size, "sweeps": chosen.sweeps, "seed": chosen.seed}
            order = replace(self.order, batch=plan.streamed.batch) if plan.streamed.batch else self.order
            many |= {"streams": plan.streamed.streams, "order": order}
            oracle = self._dual(runner, **common, **many)
        else:
            if self.solver.columns:
                oracle = ColumnsOracle(runner, self.risk, **common, room=plan.row_cache)
            elif self.solver.curved:
                oracle = SecondOrderOracle(runner, self.risk, **common)
            else:
                oracle = LinearOracle(runner, self.risk, **common, keep_margins=self.solver.margins)
        solve = solver_of(chosen, oracle, max_cuts=self.max_cuts)
        model = partial(self._model, oracle=oracle, manifest=manifest, plan=plan)
        return Trainer(oracle, solve, model, self._begin(oracle), chosen.l1 or chosen.l1_only, bool(chosen.l1_only))

    def _dual(self, runner: Runner, **given: Any) -> DualOracle:
        return DualOracle(runner, self.risk, **given)

    def _constant(self, manifest: Manifest) -> float:
        return constant_feature(self.options, manifest.statistics, self.risk.loss.unbounded())

    def _begin(self, oracle: LinearOracle) -> Callable[[StoppingRule], BundleState] | None:
        if self.origin is None:
            return None
        if isinstance(oracle, DualOracle):
            return partial(warm_start.dual, self.origin, oracle, self.max_cuts)
        return partial(warm_start.started, self.origin, oracle, self.max_cuts, margins=self.solver.margins)

    def _model(self, solution: Solution, C: float, *, oracle: LinearOracle, manifest: Manifest, plan: MemoryPlan) -> LinearModel:
        options, l1 = self.options, oracle.penalty.l1
        fixed = {"lanes": len(self.lanes), "row_cache": f"{plan.row_cache}B"} if self.solver.dual else None
        witness = solution.witness.reduced(oracle.c_bar, l1)
        if options.l1_only:  # the final primal bounds ‖w‖₁
            solution = replace(solution, lower_bound=witness.bound(oracle.c_bar, l1, solution.primal))
        return linear_model(
            options, replace(self.problem, C=float(C), l1=l1), manifest, solution.w, solution.history,
            constant=self._constant(manifest), fixed=fixed,
            certificates=(certificate(solution, oracle, options, unit=oracle.unit),), witnesses=(witness,),
        )  # fmt: skip
