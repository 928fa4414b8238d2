"""Two classes, or numbers as targets, a loss of single rows, linear: by cutting planes, Newton's method, or a working set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from streamcut.config import TrainOptions
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import BundleJob, PathJob, Trains
from streamcut.jobs.linear import (
    Trainer,
    bundle_size,
    certificate,
    constant_feature,
    linear_model,
    origins,
    penalty_needs,
    problem_on,
    solver_of,
    threads_wanted,
)
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import LinearModel
from streamcut.oracles.chosen_columns import OF_ROWS, FeaturesOracle, entry_bytes
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import row_arrays
from streamcut.oracles.second_order import SecondOrderOracle
from streamcut.problem import Problem
from streamcut.solver_table import SolverRecord
from streamcut.solvers import warm_start
from streamcut.solvers.progress import Solution, StoppingRule
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin

_COLUMNS = 64  # in memory at least, if every row had an entry in each


@dataclass(frozen=True)
class BinaryJob(BundleJob, PathJob):
    """A linear model of single rows; `origin`: the starting point, None for zero."""

    risk: PointwiseRisk
    problem: Problem
    solver: SolverRecord
    origin: Origin | None = None

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        problem = problem_on(options, manifest.statistics)
        return cls.of(options, manifest, PointwiseRisk.of(problem), problem)

    @classmethod
    def of(cls, options: TrainOptions, manifest: Manifest, risk: PointwiseRisk, problem: Problem) -> Self:
        """The job for this risk."""
        statistics = manifest.statistics
        solver, threads = options.record, threads_wanted(options)
        dimension = statistics.n_features + (options.bias != 0.0)
        max_cuts = options.max_cuts or solver.max_cuts or bundle_size(dimension)
        lanes = plan_lanes(statistics, options.lanes)
        constant = constant_feature(options, statistics, risk.loss.unbounded())
        origin = None if options.warm_start is None else origins(options, manifest, problem, constant)[0]
        return cls(options, lanes, min(threads, len(lanes)), max_cuts, risk, problem, solver, origin)

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: two margins, and a weight unless all are 1."""
        statistics, solver = manifest.statistics, self.solver
        if solver.columns:
            return self._needs_of_columns(manifest)
        numbers = row_arrays(self.risk, statistics.weight_sum is not None, keep_margins=solver.margins)
        dimension = statistics.n_features + (self.options.bias != 0.0)
        return Needs(
            dimension=dimension,
            max_cuts=self.max_cuts,
            vectors=solver.vectors,
            row_bytes=8 * len(numbers),
            more=(
                *penalty_needs(self.options, dimension),
                *[("curvature of the loss", 4 * 8 * dimension**2)] * solver.curved,
            ),
            per_worker=(("curvature of a lane", 8 * dimension**2),) * solver.curved,
            block_rows=1,
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

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        begin = None if self.origin is None else self.origin.digest()
        return {**super().decided(plan), "row_cache": plan.row_cache, "warm_start": begin}

    def trainer(self, runner: Runner, plan: MemoryPlan) -> Trains:
        chosen, manifest = self.options, runner.feed.data.manifest
        bias = self._constant(manifest)
        oracle: LinearOracle
        if self.solver.columns:
            oracle = FeaturesOracle(runner, self.risk, C=chosen.C, bias=bias, free=chosen.free, room=plan.row_cache)
        elif self.solver.curved:
            oracle = SecondOrderOracle(runner, self.risk, C=chosen.C, bias=bias, free=chosen.free)
        else:
            oracle = self._cutting(runner, bias)
        solve = solver_of(chosen, oracle, max_cuts=self.max_cuts)
        model = partial(self._model, oracle=oracle, manifest=manifest)
        return Trainer(oracle, solve, model, self._begin(oracle), chosen.l1 or chosen.l1_only, bool(chosen.l1_only))

    def _cutting(self, runner: Runner, bias: float) -> LinearOracle:
        C, free = self.options.C, self.options.free
        return LinearOracle(runner, self.risk, C=C, bias=bias, free=free, keep_margins=self.solver.margins)

    def _constant(self, manifest: Manifest) -> float:
        return constant_feature(self.options, manifest.statistics, self.risk.loss.unbounded())

    def _begin(self, oracle: LinearOracle) -> Callable[[StoppingRule], BundleState] | None:
        if self.origin is None:
            return None
        return partial(warm_start.started, self.origin, oracle, self.max_cuts, margins=self.solver.margins)

    def _model(self, solution: Solution, C: float, *, oracle: LinearOracle, manifest: Manifest) -> LinearModel:
        options, l1 = self.options, oracle.penalty.l1
        proof = solution.proof.reduced(oracle.c_bar, l1)
        if options.l1_only:  # the final primal bounds ‖w‖₁
            solution = replace(solution, lower_bound=proof.bound(oracle.c_bar, l1, solution.primal))
        return linear_model(
            options, replace(self.problem, C=float(C), l1=l1), manifest, solution.w, solution.history,
            constant=self._constant(manifest),
            certificates=(certificate(solution, oracle, options, unit=oracle.unit),), proofs=(proof,),
        )  # fmt: skip
