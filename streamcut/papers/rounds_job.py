"""Kernel models of two classes, or one-vs-rest, by the stochastic batch perceptron and its rivals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.exact_kernel import ExactKernelJob
from streamcut.jobs.kernel_data import check_norms, measured, validation_rows
from streamcut.kernels.kernel import Kernel
from streamcut.models.kernel import KernelModel
from streamcut.oracles.kernel_columns import SharedColumns
from streamcut.papers import rounds
from streamcut.solver_table import SOLVER_TABLE, solvers
from streamcut.solvers.progress import Progress

_EPOCHS = 1.0  # unless epochs are given
_SCORING_BYTES = 96 << 20  # for scoring held-out rows


@dataclass(frozen=True)
class RoundsJob(ExactKernelJob):
    """The problem, with held-out rows, if any."""

    held_out: Dataset | None = None

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        solver, statistics, record = options.chosen_solver, manifest.statistics, options.record
        family = {name: SOLVER_TABLE[name] for name in solvers("exact-kernel")}
        if not record.intercept and options.bias != 0.0:
            others = " or ".join(name for name, other in family.items() if other.intercept)
            raise UsageError(f"bias: {solver} has none; give bias 0, or use solver {others}")
        if statistics.weight_sum is not None or options.positive_weight != 1.0:
            others = " or ".join(name for name, other in family.items() if "stochastic" not in other.kinds)
            raise UsageError(f"{solver} does not support row or class weights; use solver {others}")
        check_norms(statistics)
        job = super().planned(options, manifest)
        return replace(job, held_out=validation_rows(options, statistics, job.problem))

    def needs(self, manifest: Manifest) -> Needs:
        needs = super().needs(manifest)
        if self.held_out is None:
            return needs
        buffer = 0 if self.held_out.manifest.backend == "memory" else buffer_bytes(self.held_out.manifest)
        return replace(needs, more=(*needs.more, ("scoring held-out rows", _SCORING_BYTES + buffer)))

    def _cache_wanted(self, m: int) -> tuple[int, int]:
        return 0, 0

    @property
    def _epochs(self) -> float | None:
        return self.options.epochs or (None if self.options.max_time else _EPOCHS)

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        return {"validation": None if self.held_out is None else self.held_out.manifest.fingerprint}

    def _solved(
        self, rows: Chunk, manifest: Manifest, progress: Progress, plan: MemoryPlan, kernel: Kernel, shared: SharedColumns | None
    ) -> KernelModel:
        algorithm, signs = self.options.record.algorithm("binary"), self._signs(rows)

        def model(alpha: np.ndarray, intercept: float, history: list[dict[str, Any]], **fields: Any) -> KernelModel:
            return self._model(manifest, kernel, rows, alpha * signs, intercept, history, **fields)

        def error(alpha: np.ndarray, intercept: float) -> float:
            assert self.held_out is not None
            share = measured(model(alpha, intercept, []), self.held_out)
            assert share is not None
            return 1.0 - share

        with ThreadPoolExecutor(self.workers) as pool:
            moved, apart, run = kernel.moved(rows), replace(kernel, centre=None), pool.map if self.workers > 1 else map
            responses = rounds.Responses(moved, apart, signs, manifest.statistics.n_features, self.workers, run)
            solver = self._solver(algorithm, responses)
            fit = rounds.run(solver, progress, self._epochs, None if self.held_out is None else error)
        history = rounds.as_records(fit.history)
        facts = {name: value for name, value in history[-1].items() if name not in ("iteration", "seconds") and value is not None}
        return model(fit.alpha, fit.intercept, history, reason=fit.reason, facts=facts)

    def _solver(self, algorithm: type[rounds.KernelMethod], responses: rounds.Responses) -> rounds.KernelMethod:
        options = self.options
        if not responses.diagonal.max() > 0.0:
            raise BadInputError("k(x, x) is 0 for every row: there is nothing to learn from")
        arguments: dict[str, Any] = {"random": np.random.default_rng(options.seed)}
        if options.nu is not None:
            arguments["nu"] = options.nu
        elif "C" in options.record.options:
            arguments["C"] = options.C
        if options.record.intercept:
            arguments["bias"] = options.bias != 0.0
        return algorithm(responses, **arguments)
