"""Kernel models of two classes, or one-vs-rest, by the stochastic batch perceptron and its rivals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.exact_kernel import ExactKernelJob
from streamcut.jobs.kernel_data import scored, validation_rows
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import dense_bytes
from streamcut.models.kernel import KernelModel
from streamcut.oracles.kernel_columns import Responses, SharedColumns, whole_bytes
from streamcut.papers import rounds
from streamcut.solver_table import SOLVER_TABLE, solvers
from streamcut.solvers.progress import Progress

_EPOCHS = 1.0  # unless epochs are given
_ROUND_BYTES = 96  # per row: responses, their sums, norms, signs, temporaries of the water level and of sampling
_SUPPORT_BYTES = 800  # per support row, without its entries
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
        return replace(super().planned(options, manifest), held_out=validation_rows(options, statistics))

    def needs(self, manifest: Manifest) -> Needs:
        m, d, entries = manifest.statistics.n_rows, manifest.statistics.n_features, manifest.statistics.max_row_nnz
        batch = min(self.options.batch or 1, m)
        share = min(1.0, (np.inf if self._epochs is None else self._epochs) + batch / m)  # of the rows that steps can change
        more = [
            (f"a row with all {d:,} features", 8 * d),
            (f"responses, {_ROUND_BYTES} bytes × {m:,} rows", _ROUND_BYTES * m),
            ("support rows at most", int(share * (whole_bytes(manifest) + _SUPPORT_BYTES * m)) + 1),
            ("rows of a batch", 2 * dense_bytes(batch, entries, d) + 16 * batch * entries),
        ]
        if manifest.backend != "memory":
            more.append(("buffers to fetch support rows", buffer_bytes(manifest)))
        if self.held_out is not None:
            own = 0 if self.held_out.path is None else buffer_bytes(self.held_out.manifest)
            more.append(("scoring held-out rows", _SCORING_BYTES + own))
        return Needs(0, more=tuple(more))

    @property
    def _epochs(self) -> float | None:
        return self.options.epochs or (None if self.options.max_time else _EPOCHS)

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        validation = None if self.held_out is None else self.held_out.manifest.fingerprint
        return {**super().identity(fingerprint, plan), "validation": validation}

    def _solved(
        self, runner: Runner, progress: Progress, plan: MemoryPlan, kernel: Kernel, shared: SharedColumns | None
    ) -> KernelModel:
        algorithm = self.options.record.algorithm("binary")
        responses = Responses(runner, kernel, self.positive, averaged=algorithm.averaged)

        def model(alpha: np.ndarray, intercept: float, history: list[dict[str, Any]], **known: Any) -> KernelModel:
            return self._model(runner, kernel, *responses.support(alpha), intercept, history, **known)

        def error(alpha: np.ndarray, intercept: float) -> float:
            assert self.held_out is not None
            found, wrong = model(alpha, intercept, []), 0
            for block, scores in scored(found, self.held_out):
                wrong += int(np.count_nonzero((scores > 0.0) != found.is_positive(block.y, block.first_row)))
            return wrong / self.held_out.manifest.statistics.n_rows

        solver = self._solver(algorithm, responses)
        fit = rounds.run(solver, progress, self._epochs, None if self.held_out is None else error)
        history = rounds.as_records(fit.history)
        facts = {name: value for name, value in history[-1].items() if name not in ("iteration", "seconds") and value is not None}
        return model(fit.alpha, fit.intercept, history, reason=fit.reason, facts=facts)

    def _solver(self, algorithm: type[rounds.KernelMethod], responses: Responses) -> rounds.KernelMethod:
        options = self.options
        if not responses.diagonal.max() > 0.0:
            raise BadInputError("k(x, x) is 0 for every row: there is nothing to learn from")
        given: dict[str, Any] = {"batch": options.batch or 1, "random": np.random.default_rng(options.seed)}
        if options.nu is not None:
            given["nu"] = options.nu
        elif "C" in options.record.options:
            given["C"] = options.C
        if options.record.intercept:
            given["bias"] = options.bias != 0.0
        return algorithm(responses, **given)
