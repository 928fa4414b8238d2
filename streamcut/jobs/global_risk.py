"""Jobs whose risk needs the scores of all rows at once: losses of the whole labelling, and of pairs of rows.

C multiplies the mean loss times the number of rows, C̄ = C·m, as for two classes: for "error" it is the C of the hinge loss. With
Q queries that have pairs and |P| pairs: svm_rank -l 1 (all pairs) has c = C·m·N/|P| for N queries, -l 2 (the mean over queries)
c = C·m·N/Q, which are the normalisations "pairs" and "queries"; svm_perf -l 10 has c = C·m/100.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import BundleJob, PathJob
from streamcut.jobs.linear import Trainer, bundle_size, certificate, linear_model, problem_of_two, solver_of, threads_wanted
from streamcut.losses.multivariate import Multivariate, rows_of
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.losses.scores import OneGroupRisk
from streamcut.models.linear import LinearModel
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.oracles.groups import CODE_TYPE, GroupRisk, sorting_bytes
from streamcut.oracles.pair_curvature import NEAR, CurvedPairsOracle
from streamcut.oracles.sorted_scores import BLOCK_ROWS
from streamcut.problem import Problem
from streamcut.solver_table import SolverRecord
from streamcut.solvers.progress import Solution

# Where OCAS takes its cuts: a little beyond the best point. Pairs of all rows take them at it: the next line search begins with
# the same coefficients, which saves one sort in four. Passes to 1e-3 with 0.01 and with 0: F₁ of a9a, C = 0.1, 1, 54, 106 and
# 64, 130, of ijcnn1 45, 55 and 53, 80; rankings by query of MQ2007 40, 68 and 46, 80; but ROC area of a9a, C = 0.1, 1, 10, is
# 41, 70, 132 and 40, 70, 114. Cuts delayed by a pass, so that they share one with the scores of the next point, save no pass and
# double the arithmetic.
MU = 0.01


@dataclass(frozen=True)
class GlobalJob(BundleJob, PathJob):
    """A linear model by OCAS or CPA over a GlobalOracle; `problem` has no labels when scores are only compared."""

    risk: GroupRisk | OneGroupRisk
    problem: Problem

    @property
    def oracle(self) -> type[GlobalOracle]:
        return GlobalOracle

    @property
    def solver(self) -> SolverRecord:
        return self.options.record

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: two scores (one for CPA), a coefficient, a code; and memory for sorting."""
        statistics, n = manifest.statistics, manifest.statistics.n_rows
        dimension, row_bytes = statistics.n_features + (self.problem.bias != 0.0), 16 + 8 * self.solver.margins
        if not self.risk.grouped:
            blocks, room = sorting_bytes(n, self.risk.numbers, self.workers)
            row_bytes += np.dtype(CODE_TYPE).itemsize
            more = [("row blocks in progress", blocks)]
            return Needs(dimension, self.max_cuts, row_bytes=row_bytes, row_cache=room, cached="sorting", more=tuple(more))
        row_bytes += np.dtype(self.risk.code_type).itemsize
        groups = statistics.groups or 1
        at_work = min(n, BLOCK_ROWS + max(shard.rows for shard in manifest.shards))  # no query spans two shards
        if groups == 1:
            at_work = n
        threads = min(self.workers, groups)
        more = [(f"sorting {threads} × {at_work:,} rows", threads * at_work * (16 + self.risk.room_bytes))]
        if groups > 1:
            more += [(f"{groups:,} queries", 64 * groups), ("row state of queries in progress", threads * at_work * row_bytes)]
        else:  # in scratch files, all of it would still be mapped
            more.append((f"row state, {row_bytes} bytes × {n:,} rows", row_bytes * n))
            row_bytes = 0
        return Needs(dimension, self.max_cuts, row_bytes=row_bytes, more=tuple(more))

    def trainer(self, runner: Runner, plan: MemoryPlan) -> Trainer:
        oracle: Any = self.oracle(
            runner, self.risk, C=self.options.C, bias=self.problem.bias, keep_best=self.solver.margins, workers=self.workers,
            room=plan.row_cache,
        )  # fmt: skip
        mu = 0.0 if isinstance(self.risk, PairsOfLevels) else MU
        exact: dict[str, Any] = {"cut": "exact", "mu": mu} if "cut" in self.solver.options else {}
        solve = solver_of(self.options, oracle, max_cuts=self.max_cuts, **exact)
        return Trainer(oracle, solve, partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest))

    def _model(self, solution: Solution, C: float, *, oracle: GlobalOracle, manifest: Manifest) -> LinearModel:
        problem = replace(self.problem, C=float(C))
        return linear_model(
            self.options, problem, manifest, solution.w, solution.history, constant=problem.bias,
            certificates=(certificate(solution, oracle, self.options),), proofs=(solution.proof,),
        )  # fmt: skip


def check_weights(manifest: Manifest, what: str) -> None:
    """Raise BadInputError for row weights, which `what` does not support."""
    if manifest.statistics.weight_sum is not None:
        raise BadInputError(f"the rows have weights, which {what} does not support; convert the data without them")


class MultivariateJob(GlobalJob):
    """Task "binary" with a loss of the whole labelling."""

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        check_weights(manifest, f"loss {options.chosen_loss}")
        if options.positive_weight != 1.0:
            raise UsageError(f"positive_weight: loss {options.chosen_loss} counts rows and has no weights")
        problem = problem_of_two(options, statistics)
        assert problem.labels is not None
        risk = Multivariate(
            options.chosen_loss, problem.labels[1], 0 if options.k is None else rows_of(options.k, statistics.n_rows)
        )
        max_cuts = options.max_cuts or bundle_size(statistics.n_features + (options.bias != 0.0))
        lanes = plan_lanes(statistics, options.lanes)
        return cls(options, lanes, threads_wanted(options), max_cuts, risk, problem)


_MATRICES = 4  # in addition to two per lane


class RankingJob(GlobalJob):
    """Tasks "ranking" and "roc-area", which is ranking with two labels."""

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics, labels = manifest.statistics, manifest.statistics.labels
        check_weights(manifest, f"task {options.task}")
        if labels is not None and len(labels) == 1:
            raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(labels)):g}; there is nothing to rank")
        if options.task == "roc-area" and (labels is None or len(labels) > 2):
            raise BadInputError("the area under the ROC curve needs two labels; for more take --task=ranking")
        max_cuts = options.max_cuts or bundle_size(statistics.n_features)
        lanes = plan_lanes(statistics, options.lanes)
        risk: Pairs | PairsOfLevels = Pairs(options.normalisation)
        if (statistics.groups or 1) == 1 and labels is not None and len(labels) <= PairsOfLevels.MOST:
            risk = PairsOfLevels(tuple(sorted(labels)), options.normalisation)
        return cls(options, lanes, threads_wanted(options), max_cuts, risk, options.problem())

    @property
    def oracle(self) -> type[GlobalOracle]:
        return CurvedPairsOracle if self.solver.curved else GlobalOracle

    def needs(self, manifest: Manifest) -> Needs:
        needs = super().needs(manifest)
        if not self.solver.curved:
            return needs
        size = ("curvature of the loss", (_MATRICES + 2 * self.workers) * 8 * needs.dimension**2)
        return replace(needs, vectors=self.solver.vectors, row_bytes=needs.row_bytes + 4 * len(NEAR), more=(*needs.more, size))
