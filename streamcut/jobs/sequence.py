"""Labelling of sequences (rows of one qid) by a first-order linear chain: cutting planes, or bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.passes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.dataset import first_rows
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.job import BundleJob
from streamcut.jobs.linear import bundle_size, certificate, linear_model, solver_of, threads_wanted
from streamcut.losses.sequence import SequenceRisk
from streamcut.models.linear import LinearModel
from streamcut.oracles.sequence import SequenceOracle
from streamcut.oracles.sequence_dual import VECTORS, SequenceDualOracle
from streamcut.solver_table import SolverRecord
from streamcut.solvers.progress import Progress

_KERNELS = ("kernels of chains, and what the paths of a block are decoded to", 32 << 20)
_VITERBI = 12  # bytes per row and class of the current block: scores, back pointers, whether scores are finite


def chain(statistics: Statistics) -> SequenceRisk:
    """The risk of data with these labels. Raises BadInputError for data without labelled sequences."""
    if statistics.groups is None:
        raise BadInputError("task sequence: the rows have no qid, which tells the rows of a sequence")
    if statistics.labels is None or len(statistics.labels) < 2:
        many = "more than 4096" if statistics.labels is None else "1"
        raise BadInputError(f"task sequence: the data has {many} different labels; it takes 2 to 4096")
    if statistics.weight_sum is not None:
        raise UsageError("task sequence: rows have weights, which sequences cannot have; convert the data without them")
    return SequenceRisk(tuple(statistics.labels))


@dataclass(frozen=True)
class SequenceJob(BundleJob):
    """The problem."""

    risk: SequenceRisk
    solver: SolverRecord

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        solver = options.record
        risk = chain(statistics)
        lanes = plan_lanes(statistics, options.lanes or (1 if solver.dual else None))
        if options.distributed:  # a task has the row state of its lane alone, and no sequence spans two shards
            starts = np.array(first_rows(manifest))
            lanes = Lanes(tuple(np.unique(starts[[np.abs(starts - bound).argmin() for bound in lanes.bounds]]).tolist()))
        max_cuts = options.max_cuts or bundle_size(_dimension(options, risk, statistics))
        return cls(options, lanes, min(threads_wanted(options), len(lanes)), max_cuts, risk, solver)

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: two scores per class, the class, whether a sequence begins, and the shares of the classes."""
        statistics, K, dual = manifest.statistics, self.risk.classes, self.solver.dual
        most = max(shard.rows for shard in manifest.shards)  # no sequence spans two shards
        return Needs(
            dimension=_dimension(self.options, self.risk, statistics),
            max_cuts=self.max_cuts,
            vectors=VECTORS if dual else 1,
            row_bytes=(16 * K + 5) * self.solver.margins + 8 * K * dual,
            more=(*[("transitions that sequences hold", 8 * (K * K + 3) * (statistics.groups or 0))] * dual, _KERNELS),
            per_worker=(("paths", most * K * _VITERBI),),
        )

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> LinearModel:
        options, K = self.options, self.risk.classes
        oracle: SequenceOracle
        if self.solver.dual:
            oracle = SequenceDualOracle(runner, self.risk, C=options.C, bias=options.bias, seed=options.seed)
        else:
            oracle = SequenceOracle(runner, self.risk, C=options.C, bias=options.bias, keep_margins=self.solver.margins)
        solution = solver_of(options, oracle, max_cuts=self.max_cuts)(progress)
        manifest = runner.feed.data.manifest
        return linear_model(
            options, options.problem(labels=self.risk.labels), manifest, solution.w[: -K * K].reshape(-1, K), solution.history,
            constant=options.bias, transitions=solution.w[-K * K :].reshape(K, K).copy(),
            certificates=(certificate(solution, oracle, options),), proofs=(solution.proof,),
        )  # fmt: skip


def _dimension(options: TrainOptions, risk: SequenceRisk, statistics: Statistics) -> int:
    K = risk.classes
    return (statistics.n_features + (options.bias != 0.0)) * K + K * K
