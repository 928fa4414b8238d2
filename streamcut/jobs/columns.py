"""Linear models whose problems are columns, trained in the same passes: one-vs-rest classes, grids of C, λ and folds.

So is a single problem, of two classes, numbers or a joint loss.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np

from streamcut.bundle.penalty import penalty_of
from streamcut.compiled.problems import Room
from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs, Streamed
from streamcut.execution.row_state import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.systems import give_back
from streamcut.foundation.units import part_of
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.row_view import Folds
from streamcut.jobs.job import PathJob
from streamcut.jobs.linear import (
    bundle_size,
    cache_wanted,
    constant_feature,
    detail,
    linear_model,
    multiclass_model,
    origins,
    penalty_needs,
    problem_on,
    threads_wanted,
)
from streamcut.loss_table import JOINT_LOSSES
from streamcut.losses import joint_loss
from streamcut.losses.pointwise import Column, ColumnsRisk, PointwiseRisk
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.model import Model
from streamcut.oracles.columns import ORDER, ColumnsOracle
from streamcut.oracles.columns_cache import ColumnsCache, solving_bytes
from streamcut.oracles.columns_passes import STREAMS
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import row_arrays
from streamcut.problem import Problem
from streamcut.solver_table import SolverRecord
from streamcut.solvers import columns, ocas
from streamcut.solvers.columns_state import Answer, history_of
from streamcut.solvers.progress import Iteration, Progress
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin, started

run_log = logging.getLogger("streamcut.run")

# Of the rows, those cached when memory is plentiful: all for several columns, as text of 20 classes then takes 5 passes, 11 with
# 0.3. For one: all where a sweep over them stays in the processor, as it then costs little, else 0.3 while that is little memory;
# on 3 million rows of text, 10 % takes as many passes as 30 %, in three quarters of the time.
_SMALL, _CACHED, _FEW, _OF_MANY = 4 << 20, 0.3, 128 << 20, 0.1
# Where rows have much in common, as a column far from 0 among many, dual ascent crawls: steps of single rows cancel each other.
# OCAS, which moves all rows at once, takes over then, if so many cuts fit in place of the row cache, or in so many bytes.
_CUTS, _ROOM = 16, 4 << 20


class Point(NamedTuple):
    """A model of a grid: C, λ (a number, or a fraction of λ_max such as "10%"), and the fold left out (−1: none)."""

    C: float
    l1: float | str = 0.0
    fold: int = -1


@dataclass(frozen=True)
class ColumnsJob(PathJob):
    """A model for each of `points`, of one column or a column for each class.

    group  the most columns trained at a time; None: all
    """

    risk: ColumnsRisk
    points: tuple[Point, ...]
    solver: SolverRecord
    origins: tuple[Origin, ...] | None = None
    group: int | None = None

    @classmethod
    def of(cls, options: TrainOptions, manifest: Manifest, points: Sequence[Point], folds: Folds | None = None) -> Self:
        """A grid of `points` on the problem of the options: two classes, numbers, or one class against the rest."""
        statistics = manifest.statistics
        problem = problem_on(options, statistics)
        if options.kind in JOINT_LOSSES:
            loss: Any = joint_loss(options.kind)(len(problem.labels or ()))
            rows = PointwiseRisk(loss)
        else:
            rows = PointwiseRisk.of(problem)
        risk = ColumnsRisk(rows, problem.labels, problem.rest, folds)
        lanes = plan_lanes(statistics, options.lanes or 1)
        return cls(options, lanes, min(threads_wanted(options), len(lanes)), risk, tuple(points), options.record)

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        job = cls.of(options, manifest, [Point(options.C, options.l1)])
        if options.target is not None and job.several:
            raise UsageError("target: one-vs-rest has an objective for each class, not a single one; leave it out")
        if options.warm_start is None:
            return job
        return replace(job, origins=origins(options, manifest, job.problem, job._constant(manifest.statistics)))

    @property
    def several(self) -> bool:
        """Whether each point has a column for each class."""
        return self.options.kind == "one-vs-rest"

    @property
    def joint(self) -> bool:
        """Whether each point has a group of columns, the classes of a joint loss."""
        return self.risk.group is not None

    @property
    def problem(self) -> Problem:
        """What is minimised, but for C and λ."""
        return self.options.problem(labels=self.risk.labels, rest=self.risk.rest)

    @property
    def classes(self) -> range:
        """The classes that have problems of their own at each point."""
        if not self.several:
            return range(1, 2)
        assert self.risk.labels is not None
        return range(len(self.risk.labels))

    @property
    def count(self) -> int:
        """The number of problems: columns, or groups."""
        return len(self.points) * len(self.classes)

    @property
    def single(self) -> bool:
        """Whether there is one problem, of all rows, which OCAS solves, too."""
        return len(self.points) == 1 and not (self.several or self.joint) and self.risk.folds is None

    @property
    def at_once(self) -> int:
        """The number of problems trained at a time."""
        return self.count if self.group is None else self.group

    def smaller(self) -> Iterator[tuple[Self, str]]:
        """The job with all columns at a time, then with fewer and fewer, which costs reading, not arithmetic."""
        yield self, ""
        last = K = self.count
        for groups in range(2, K + 1):
            if (size := -(-K // groups)) < last:
                yield replace(self, group=size), f"{size} columns at a time, the others wait until one leaves"
            last = size

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight; for each column two scores and the share before and after a pass."""
        statistics, K, loss = manifest.statistics, self.at_once * self.risk.width, self.risk.loss
        features = statistics.n_features + (self.options.bias != 0.0)
        whole, share = features * self.count * self.risk.width, np.dtype(loss.code_type).itemsize
        margins = row_arrays(self.risk.pointwise, statistics.weight_sum is not None, keep_margins=False)
        arrays = (8 if self.risk.labels is None else 4, *[8] * len(margins), *[2] * (self.risk.folds is not None))
        arrays = (*arrays, 8 * K, 8 * K, 2 * share * K)
        near = min(ORDER.group_rows(statistics), statistics.n_rows)
        copies = 2 if self.group is None else 3  # the third to make models: without groups, columns are freed first
        what = f"weights and proofs of {self.count * self.risk.width} columns, of which {K} are trained at a time"
        cached = self._cached_row(manifest)
        return Needs(
            dimension=features * K,
            vectors=4 + self.options.free,
            row_bytes=sum(arrays),
            more=(
                *self._sides(features),
                *penalty_needs(replace(self.options, intercept="auto"), features * K),
                (what, copies * 8 * whole),
                *[("cuts, if dual ascent gains little", _ROOM)] * self.single,
            ),
            whole=whole,
            row_cache=cache_wanted(self.options, manifest, self.lanes, part=self._part(manifest, cached), row_bytes=cached),
            per_worker=(
                ("order of rows", ORDER.mixing_bytes(statistics)),
                *self._sides(features),
                (f"pairs of rows and {K} columns", Room.bytes_of(near, K)),
            ),
            block_rows=ORDER.batch_rows(statistics),
            mixing=self._mixing(manifest, sum(arrays)),
        )

    def _sides(self, features: int) -> tuple[tuple[str, int], ...]:
        """Memory of the bounds of free intercepts: two cuts for each class and fold."""
        kinds = min(self.at_once, len(self.classes) * len({point.fold for point in self.points}))
        return (("cuts that bound free intercepts", 2 * 8 * features * kinds),) * self.options.free

    def _part(self, manifest: Manifest, cached: int) -> float:
        """The part of the rows that caches hold when memory is plentiful; each takes `cached` bytes besides its entries."""
        if self.at_once * self.risk.width > 1 or CacheSize.bytes_of_all(manifest) <= _SMALL:
            return 1.0
        return max(_OF_MANY, min(_CACHED, _FEW / CacheSize.bytes_of_all(manifest, cached)))

    def _cached_row(self, manifest: Manifest) -> int:
        """Bytes per cached row, without its entries, with what solving for all rows at once takes."""
        dimension = manifest.statistics.n_features + (self.options.bias != 0.0)
        solving = 0 if self.joint else solving_bytes(self.risk.loss, manifest.statistics, dimension)
        return ColumnsCache.row_bytes(self.at_once * self.risk.width) + solving

    def _mixing(self, manifest: Manifest, row_bytes: int) -> tuple[Streamed, ...]:
        """The numbers of streams that rows come from at once, with the batches they make, best first."""
        if not ORDER.has_streams(manifest.statistics, self.lanes):
            return ()
        orders = [replace(ORDER, batch=ORDER.batch >> times) for times in range(ORDER.batch.bit_length())]
        spare = threads_wanted(self.options) >= 2 * self.workers
        return tuple(
            Streamed(count, order.stream_bytes(manifest, count, row_bytes), True, spare, order.batch)
            for count, order in product(STREAMS, orders)
        )

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        points = {"points": [list(point) for point in self.points]} if len(self.points) > 1 else {}
        return {
            **super().decided(plan),
            **points,
            "row_cache": plan.row_cache,
            "columns_at_once": self.group,
            "folds": None if self.risk.folds is None else asdict(self.risk.folds),
            "streams": plan.streamed.streams,
            "batch": plan.streamed.batch,
            "warm_start": None if self.origins is None else [origin.digest() for origin in self.origins],
        }

    def models(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> list[Model]:
        """The model of each point."""
        return ColumnsTrainer(self, runner, plan).models(progress)

    def trainer(self, runner: Runner, plan: MemoryPlan) -> ColumnsTrainer:
        return ColumnsTrainer(self, runner, plan)

    def _constant(self, statistics: Statistics) -> float:
        """The value of the constant feature of all columns."""
        least = replace(self.options, C=min(point.C for point in self.points))
        return constant_feature(least, statistics, self.risk.loss.unbounded())

    def oracle(self, runner: Runner, plan: MemoryPlan, l1: Sequence[float]) -> ColumnsOracle:
        """`l1` are the λ of the points."""
        options, manifest = self.options, runner.feed.data.manifest
        size = CacheSize.planned(manifest, plan.row_cache, len(runner.lanes), self._cached_row(manifest))
        columns = [
            Column(point.C, threshold, number, point.fold)
            for point, threshold in zip(self.points, l1, strict=True)
            for number in self.classes
        ]
        order = replace(ORDER, batch=plan.streamed.batch) if plan.streamed.batch else ORDER
        return ColumnsOracle(
            runner, self.risk, columns, bias=self._constant(manifest.statistics), free=options.free, size=size,
            sweeps=options.sweeps, seed=options.seed, at_once=self.at_once, streams=plan.streamed.streams, order=order,
        )  # fmt: skip

    def model(
        self, answers: list[Answer], history: list[Iteration], manifest: Manifest, C: float, l1: float, oracle: LinearOracle
    ) -> Model:
        """The model from the columns of a point, which are removed from `answers`, so that no weights are kept twice."""
        options, constant = self.options, self._constant(manifest.statistics)
        problem = replace(self.problem, C=float(C), l1=l1)
        asked = options.tol, options.tol_relative
        certificates = tuple(
            Certificate(
                *(a.primal, a.bound, a.c_bar), *asked, a.reason is StopReason.CONVERGED, a.reason,
                raised=a.raised, detail=detail(a.reason, oracle), unit=oracle.unit, equal=oracle.equal,
            )
            for a in answers
        )  # fmt: skip
        if self.several or self.joint:
            assert self.risk.labels is not None
            proved = list(zip(certificates, (answer.proof for answer in answers), strict=True))
            W = np.empty((len(answers[0].w) // self.risk.width, len(self.risk.labels)))
            for k in range(0, W.shape[1], self.risk.width):
                W[:, k : k + self.risk.width] = answers.pop(0).w.reshape(len(W), -1)
            if self.group is not None:  # memory is short, and the freed blocks lie between live ones
                give_back()
            return multiclass_model(options, problem, manifest, W, history, proved, constant)
        (answer,) = answers
        return linear_model(
            options, problem, manifest, answer.w, history, constant=constant, fixed={"lanes": len(self.lanes)},
            certificates=certificates, proofs=(answer.proof.reduced(answer.c_bar, l1),),
        )  # fmt: skip


class ColumnsTrainer:
    """As streamcut.jobs.linear.Trainer, but each C starts from zero."""

    def __init__(self, job: ColumnsJob, runner: Runner, plan: MemoryPlan) -> None:
        self._job, self._runner, self._plan = job, runner, plan

    def train(self, C: float, progress: Progress, *, l1: float | str | None = None, keep: bool = False) -> Model:
        """As Trainer.train."""
        self._job = replace(self._job, points=(Point(C, self._job.points[0].l1 if l1 is None else l1),))
        (model,) = self.models(progress, keep=keep)
        return model

    def models(self, progress: Progress, *, keep: bool = False) -> list[Model]:
        """The model of each point. With `keep`, a checkpoint is left at the end even when all converged."""
        job, manifest = self._job, self._runner.feed.data.manifest
        l1s, most, passes = self._thresholds()
        oracle = job.oracle(self._runner, self._plan, l1s)
        oracle.passes = passes
        asked, cuts = progress.rule, self._cuts(oracle.dimension)
        solution: columns.ColumnsSolution | None = None
        last: LinearOracle = oracle
        if not progress.resumes("cuts"):
            solution = columns.solve(oracle, progress, job.origins, yields=cuts > 0)
        if solution is None or (cuts and solution.answers[0].reason in columns.STILL):
            reached, solution, progress.rule = None if solution is None else solution.answers[0], None, asked
            solution, last = self._handed_over(oracle, progress, reached, cuts)
        if keep and all(answer.reason is StopReason.CONVERGED for answer in solution.answers):
            progress.save(solution.state, last)
        models, per_point, answers, iterations = [], len(job.classes), solution.answers, solution.history
        if job.origins is not None:
            answers = [_with_bound_of(origin, answer, l1s[0]) for origin, answer in zip(job.origins, answers, strict=True)]
        del solution  # its state holds the answers, too
        for number, (point, l1) in enumerate(zip(job.points, l1s, strict=True)):
            of_point = answers[:per_point]
            del answers[:per_point]
            history = iterations if len(job.points) == 1 else history_of(of_point, iterations)
            model = job.model(of_point, history, manifest, point.C, l1, last)
            parameters = {"row_cache": f"{self._plan.row_cache}B", **({} if most is None else {"l1_max": most[number]})}
            models.append(replace(model, parameters={**model.parameters, **parameters}))
        return models

    def _cuts(self, dimension: int) -> int:
        """How many cuts OCAS has room for where it can take over, else 0."""
        room = max(self._plan.row_cache, _ROOM) // (8 * dimension)
        possible = self._job.single and not (self._job.options.free and self._job.options.l1)
        return min(room, bundle_size(dimension)) if possible and room >= _CUTS else 0

    def _handed_over(
        self, oracle: ColumnsOracle, progress: Progress, reached: Answer | None, cuts: int
    ) -> tuple[columns.ColumnsSolution, LinearOracle]:
        """OCAS, from what dual ascent on `oracle` has reached, or from a checkpoint, to the end of `progress`; and its oracle."""
        job, runner, (column,) = self._job, self._runner, oracle.columns
        oracle.drop_caches()
        runner.row_state.clear()
        how: dict[str, Any] = {"bias": job._constant(runner.feed.data.manifest.statistics), "free": job.options.free}
        last = LinearOracle(runner, job.risk.pointwise, C=column.C, **how, keep_margins=True)
        if not job.options.free:
            last.penalty = penalty_of(column.l1)
        last.passes, last.traffic = oracle.passes, oracle.traffic
        begin = BundleState.at_zero
        if reached is not None:
            run_log.info("dual ascent gains little; OCAS goes on from where it is")
            begin = partial(started, Origin(reached.w, reached.proof), margins=True)
            progress.hand_over()
        s = ocas.solve(last, progress, max_cuts=cuts, begin=begin)
        answer = Answer(s.w, s.primal, s.raised, s.lower_bound, s.proof, last.c_bar, s.reason)
        return columns.ColumnsSolution([answer], s.history, s.state), last

    def _thresholds(self) -> tuple[list[float], list[float] | None, int]:
        """(λ of each point; λ_max per point, where any λ is a fraction of it; the passes that this took)."""
        job = self._job
        parts = [part_of(point.l1) for point in job.points]
        if all(part is None for part in parts):
            return [float(point.l1) for point in job.points], None, 0
        oracle = job.oracle(self._runner, self._plan, [0.0] * len(parts))
        steepest = oracle.steepest_at_zero().reshape(len(parts), -1).max(axis=1)
        M = oracle.weights.reshape(len(parts), -1)[:, 0]
        most = [float(point.C * m * s) for point, m, s in zip(job.points, M, steepest, strict=True)]
        l1s = [
            float(point.l1) if part is None else part * l1_max
            for point, part, l1_max in zip(job.points, parts, most, strict=True)
        ]
        return l1s, most, oracle.passes


def _with_bound_of(origin: Origin, answer: Answer, l1: float) -> Answer:
    """The answer with the bound of the model from which training began, if it is better: mixed with others, where an intercept is
    free, its rounding counts once more."""
    if origin.cut is None:
        return answer
    bound = origin.cut.bound(answer.c_bar, l1)
    return replace(answer, bound=bound, proof=origin.cut) if bound > answer.bound else answer
