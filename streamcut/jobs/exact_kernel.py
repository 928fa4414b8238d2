"""Exact kernel models of two classes, or one-vs-rest, by SMO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, take
from streamcut.foundation.shown import by_name
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import entry_bytes
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Job
from streamcut.jobs.kernel_data import centred_kernel, chosen_kernel, kernel_model
from streamcut.jobs.linear import problem_of_two, threads_wanted
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import dense_bytes
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.kernel import KernelModel
from streamcut.oracles.kernel_columns import TILE, SharedColumns, read_whole, whole_bytes
from streamcut.problem import Problem
from streamcut.solvers import smo
from streamcut.solvers.progress import Progress

_SMO_BYTES = 168  # per row: α, gradient, bounds, norms, products with the mean row, and the results at the end
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ExactKernelJob(Job):
    """`sharing`: problems on the same rows share kernel columns, whose cache is as large as for a single problem."""

    problem: Problem
    sharing: bool = False
    distributable: ClassVar[bool] = False

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        threads, lanes = threads_wanted(options), plan_lanes(manifest.statistics)
        problem = problem_of_two(options, manifest.statistics)
        return cls(options, lanes, min(threads, len(lanes)), problem)

    def needs(self, manifest: Manifest) -> Needs:
        """None of it can be on disk: every step uses all rows."""
        m, d, entries = manifest.statistics.n_rows, manifest.statistics.n_features, manifest.statistics.max_row_nnz
        rows = 0 if manifest.backend == "memory" and len(manifest.shards) == 1 else whole_bytes(manifest)
        if self.options.kernel == "rbf":  # the copy made then
            rows += (8 + entry_bytes(manifest)) * manifest.statistics.nnz + 24 * (m + 1)
        tile = min(max(8 * TILE, dense_bytes(8, entries, d)), dense_bytes(m, entries, d))
        more = (
            (f"a row with all {d:,} features", 8 * d),
            ("all rows", rows),
            ("support rows at most", whole_bytes(manifest)),
            ("dual variables", _SMO_BYTES * m),
            (f"support rows scored by {self.workers} workers", self.workers * tile),
        )
        return Needs(0, row_cache=self._cache_wanted(m), more=more)

    def _cache_wanted(self, m: int) -> tuple[int, int]:
        """(least, most) bytes of the caches of kernel columns: two columns per cache, and all columns."""
        least, most = 8 * m * (1 + self.sharing), 4 * m * m * (1 + self.sharing)
        if self.options.kernel_cache == "auto":
            return least, max(least, most)
        size = max(parse_size(self.options.kernel_cache, option="kernel_cache", total=most), least)
        return size, size

    @property
    def positive(self) -> float:
        """The label of the rows whose scores should be positive."""
        assert self.problem.labels is not None
        return self.problem.labels[1]

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> KernelModel:
        rows = read_whole(runner.feed)
        return self._solved(rows, runner.feed.data.manifest, progress, plan, self._kernel(runner), None)

    def solve_each(self, runner: Runner, progress: Callable[[], Progress], plan: MemoryPlan) -> list[KernelModel]:
        """A model for each label of the data against the rest; `plan` is of a job that is `sharing`."""
        manifest, kernel, rows = runner.feed.data.manifest, self._kernel(runner), read_whole(runner.feed)
        shared = SharedColumns(rows.n_rows, plan.row_cache // 2)
        models = []
        for label in sorted(manifest.statistics.labels or {}):
            options = replace(self.options, positive_label=label)
            job = replace(self, options=options, problem=problem_of_two(options, manifest.statistics))
            models.append(job._solved(rows, manifest, progress(), plan, kernel, shared))
        return models

    def _kernel(self, runner: Runner) -> Kernel:
        return centred_kernel(chosen_kernel(self.options, runner.feed), runner.feed)

    def _solved(
        self, rows: Chunk, manifest: Manifest, progress: Progress, plan: MemoryPlan, kernel: Kernel, shared: SharedColumns | None
    ) -> KernelModel:
        options, signs = self.options, self._signs(rows)
        upper = options.C * np.where(signs > 0, options.positive_weight, 1.0)
        if rows.weight is not None:
            upper *= rows.weight
        c_bar = float(upper.sum())
        state = smo.SMO(
            kernel.moved(rows), replace(kernel, centre=None), signs, upper,
            dimension=manifest.statistics.n_features, bias=options.bias != 0.0,
            cache_bytes=plan.row_cache // (1 + self.sharing), workers=self.workers, shared=shared,
        )  # fmt: skip
        if not state.diagonal.max() <= _LARGEST:
            raise BadInputError(
                f"kernel: values of {options.kernel} reach {state.diagonal.max():g}, too large for float32, which kernel columns "
                "are; scale the features"
            )
        value, reason, history = smo.run(state, progress, c_bar)
        certificate = Certificate(
            value.primal, value.dual, c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason,
            raised=value.raised,
        )  # fmt: skip
        return self._model(
            manifest, kernel, rows, state.beta, value.intercept, [by_name(stage) for stage in history], reason=reason,
            certificates=(certificate,), facts={"evaluations": state.evaluations, "steps": state.steps},
        )  # fmt: skip

    def _signs(self, rows: Chunk) -> np.ndarray:
        """The classes ±1, int8 (n,)."""
        return np.where(rows.y == self.positive, 1, -1).astype(np.int8)

    def _model(
        self, manifest: Manifest, kernel: Kernel, rows: Chunk, coefficients: np.ndarray, intercept: float,
        history: list[dict[str, Any]], **fields: Any,
    ) -> KernelModel:  # fmt: skip
        """The model of all rows whose coefficient is not 0."""
        (used,) = np.nonzero(coefficients)
        return kernel_model(
            self.options, self.problem, manifest, take(rows, used), history, kernel=kernel, intercept=float(intercept),
            coefficients=coefficients[used], **fields,
        )  # fmt: skip
