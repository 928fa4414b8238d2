"""Kernels by sampled cuts (Yu & Joachims 2008): two classes, several, or sequences with kernelised emissions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.shown import by_name
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import BundleJob
from streamcut.jobs.kernel_data import centred_kernel, check_norms, chosen_kernel, kernel_model
from streamcut.jobs.linear import problem_on, threads_wanted
from streamcut.jobs.sequence import chain
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import dense_bytes
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.model import Model
from streamcut.oracles.kernel_columns import TILE
from streamcut.papers.sampled import SampledSolution
from streamcut.papers.sampled_oracle import CANDIDATES, SampledOracle
from streamcut.papers.sampled_passes import Expansion
from streamcut.papers.sampled_proof import Proof
from streamcut.papers.sampled_tasks import SampledHinge, SampledMulticlass, SampledSequence, SampledTask
from streamcut.problem import Problem
from streamcut.solvers.progress import Progress

SAMPLES = 400  # the smaller of the paper's two sizes
_MOST_CUTS, _FEWEST_CUTS = 1000, 100  # defaults; a full bundle drops cuts that are still needed, and training takes longer
_ROW_SCORES, _CUT_BYTES = 1 << 30, 1 << 28  # bytes that rows' scores, and cuts, may fill above the fewest cuts
_ENTRY = 12  # the most bytes per entry of a kept row


@dataclass(frozen=True)
class SampledJob(BundleJob):
    """`weighted`: rows or classes have weights."""

    task: SampledTask
    problem: Problem
    samples: int
    weighted: bool
    distributable: ClassVar[bool] = False
    fewest_cuts: ClassVar[int] = _FEWEST_CUTS

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        if options.tol is None or options.tol >= 1.0:
            raise UsageError("tol: sampled cuts stop at it; give a number above 0 and below 1, the mean loss at 0")
        check_norms(statistics)
        sequences = options.task == "sequence"
        problem = options.problem(labels=chain(statistics).labels) if sequences else problem_on(options, statistics)
        labels = problem.labels or ()
        task: SampledTask = SampledSequence(labels) if sequences else SampledMulticlass(labels)
        if problem.task == "binary":
            task = SampledHinge(labels[1], options.positive_weight)
        examples = statistics.groups if sequences and statistics.groups else statistics.n_rows
        samples = min(options.samples or SAMPLES, examples)
        lanes = plan_lanes(statistics)
        workers = min(threads_wanted(options), len(lanes))
        weighted = statistics.weight_sum is not None or options.positive_weight != 1.0
        job = cls(options, lanes, workers, options.max_cuts or _MOST_CUTS, task, problem, samples, weighted)
        if options.max_cuts is not None:
            return job
        room = _CUT_BYTES / job._cut_bytes(manifest)
        if options.record.margins:
            room = min(room, _ROW_SCORES / (4 * statistics.n_rows * task.columns))
        return replace(job, max_cuts=int(min(max(room, _FEWEST_CUTS), _MOST_CUTS)))

    def _cut_rows(self, manifest: Manifest) -> float:
        """The average number of rows of a sample."""
        statistics = manifest.statistics
        return self.samples * (statistics.n_rows / statistics.groups if self.task.groups and statistics.groups else 1.0)

    def _cut_bytes(self, manifest: Manifest) -> float:
        """Bytes of a cut whose rows are 1.5 times the average length."""
        entries = 1.5 * manifest.statistics.nnz / manifest.statistics.n_rows
        return self._cut_rows(manifest) * (_ENTRY * entries + 24 * self.task.terms + 64)

    def needs(self, manifest: Manifest) -> Needs:
        """Row state of the linear-time algorithm: the scores under every cut."""
        statistics, columns = manifest.statistics, self.task.columns
        rows, cut = self._cut_rows(manifest), self._cut_bytes(manifest)
        entries, d = statistics.nnz / statistics.n_rows, statistics.n_features
        dense = dense_bytes(rows, 1.5 * entries, d)
        scores = 4 * self.max_cuts * columns
        block = 48 * columns * max(shard.rows for shard in manifest.shards)  # both ends of a line and a point of it
        kept = (2 * CANDIDATES * cut + 8 * rows * scores) if self.options.record.margins else (32 * cut + rows * 2 * scores)
        return Needs(
            dimension=0,
            row_bytes=scores * self.options.record.margins,
            more=(
                (f"{self.max_cuts} cuts of {self.samples} examples", int(self.max_cuts * cut)),
                ("a sample as dense rows", dense),
                ("samples and their scores", int(kept)),
                (f"scores of {self.workers} workers", self.workers * block),
                ("support rows of the proof", self.workers * max(8 * TILE, dense_bytes(8, statistics.max_row_nnz, d))),
            ),
        )

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> Model:
        options = self.options
        assert options.tol is not None
        kernel = centred_kernel(chosen_kernel(options, runner.feed), runner.feed)
        oracle = SampledOracle(
            runner, self.task, kernel, C=options.C, bias=options.bias, samples=self.samples, max_cuts=self.max_cuts,
            seed=options.seed, keeps_scores=self.options.record.margins, weighted=self.weighted,
        )  # fmt: skip
        solution = options.record.algorithm(options.kind).solve(oracle, progress, epsilon=options.tol)
        support, coefficients = oracle.answer(solution.bundle, solution.mixture)
        proof = None
        if solution.reason is not StopReason.INTERRUPTED:
            try:
                proof = oracle.prove(solution.bundle, support, coefficients)
            except Interrupted:
                solution = replace(solution, reason=StopReason.INTERRUPTED)
        return self._model(solution, support, coefficients, proof, oracle, kernel, runner.feed.data.manifest)

    def _certificate(self, proof: Proof, reason: StopReason, c_bar: float) -> Certificate:
        """What is proved, regardless of the estimates on which the solver stopped."""
        options = self.options
        if proof.primal - proof.lower_bound <= (options.tol or 0.0) * c_bar:
            reason = StopReason.CONVERGED
        elif reason is StopReason.CONVERGED or (reason is StopReason.TARGET and proof.primal > (options.target or 0.0)):
            reason = StopReason.SAMPLES
        converged = reason is StopReason.CONVERGED
        return Certificate(proof.primal, proof.lower_bound, c_bar, options.tol, None, converged, reason, raised=proof.raised)

    def _model(
        self, solution: SampledSolution, support: Expansion, coefficients: np.ndarray, proof: Proof | None,
        oracle: SampledOracle, kernel: Kernel, manifest: Manifest,
    ) -> Model:  # fmt: skip
        certificate, point, scored = None, None, 0
        if proof is not None:
            certificate, point = self._certificate(proof, solution.reason, oracle.c_bar), proof.point
            scored = oracle.rows * support.rows.n_rows
            if self.task.columns == 1:
                point = replace(point, coefficients=np.ascontiguousarray(point.coefficients[:, 0]))
        two, history = self.task.columns == 1, [by_name(iteration) for iteration in solution.history]
        return kernel_model(
            self.options,
            self.problem,
            manifest,
            support.rows,
            history,
            fixed={"gamma": kernel.gamma, "samples": self.samples, "max_cuts": self.max_cuts},
            coefficients=np.ascontiguousarray(coefficients[:, 0]) if two else coefficients,
            kernel=kernel,
            intercept=float(support.constant[0]) if two else support.constant,
            reason=solution.reason if certificate is None else certificate.stop_reason,
            certificates=() if certificate is None else (certificate,),
            point=point,
            facts={
                "primal_estimate": solution.primal_estimate,
                "bound_estimate": solution.bound_estimate,
                "epsilon": self.options.tol,
                "samples": self.samples,
                "cuts": len(solution.bundle),
                "iterations": len(solution.history),
                "kernel_evaluations": oracle.evaluations,
                "kernel_evaluations_of_proof": scored,
            },
            transitions=support.dense.reshape(self.task.columns, -1) if self.task.groups else None,
        )
