"""Exact kernel models of two classes, or one-vs-rest: SMO, the stochastic batch perceptron and its rivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from streamcut.compiled.kernel_columns import WIDTH
from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.fields import by_name
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import Dataset, entry_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.opening import open_dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.job import identity
from streamcut.jobs.kernel_choice import centred_kernel, chosen_kernel
from streamcut.jobs.linear import threads_wanted, two_labels
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.kernel import KernelModel
from streamcut.oracles.kernel_columns import Responses, SharedColumns, read_whole, take, whole_bytes
from streamcut.solver_table import SOLVER_TABLE, solvers
from streamcut.solvers import smo
from streamcut.solvers.papers import kernel_iterations
from streamcut.solvers.papers.kernel_iterations import KernelSolver
from streamcut.solvers.progress import Progress

_EPOCHS = 1.0  # unless epochs are given
_ROUND_BYTES = 96  # per row: responses, their sums, norms, signs, temporaries of the water level and of sampling
_SMO_BYTES = 168  # per row: α, gradient, bounds, norms, products with the mean row, and the results at the end
_LARGEST = float(np.finfo(np.float32).max)
_SUPPORT_BYTES = 800  # per support row of an iterative solver, without its entries
_SCORING_BYTES = 96 << 20  # for scoring held-out rows


@dataclass(frozen=True)
class ExactKernelJob:
    """The problem. `labels` are (negative, positive); `rest`: the negative label stands for several.

    `sharing`: problems on the same rows share kernel columns, whose cache is as large as for a single problem.
    """

    options: TrainOptions
    labels: tuple[float, float]
    rest: bool
    lanes: Lanes
    workers: int
    held_out: Dataset | None = None
    sharing: bool = False
    task: ClassVar[str] = "binary"
    distributable: ClassVar[bool] = False

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        solver, statistics, record = options.chosen_solver, manifest.statistics, options.record
        negative, positive, rest = two_labels(statistics, options.positive_label)
        family = {name: SOLVER_TABLE[name] for name in solvers("exact-kernel")}
        if not record.intercept and options.bias != 0.0:
            others = " or ".join(name for name, other in family.items() if other.intercept)
            raise UsageError(f"bias: {solver} has none; give bias 0, or use solver {others}")
        if not record.weights and (statistics.weight_sum is not None or options.positive_weight != 1.0):
            others = " or ".join(name for name, other in family.items() if other.weights)
            raise UsageError(f"{solver} does not support row or class weights; use solver {others}")
        held_out = None if options.validation is None else open_dataset(options.validation)
        if held_out is not None and held_out.manifest.statistics.n_features > statistics.n_features:
            raise BadInputError(
                f"validation: {options.validation} has {held_out.manifest.statistics.n_features:,} features, the data only "
                f"{statistics.n_features:,}"
            )
        threads, lanes = threads_wanted(options), plan_lanes(statistics)
        return cls(options, (negative, positive), rest, lanes, min(threads, len(lanes)), held_out)

    def needs(self, manifest: Manifest) -> Needs:
        """None of it can be on disk: kernel solvers use all responses in every step."""
        m, d = manifest.statistics.n_rows, manifest.statistics.n_features
        dense = (f"a row with all {d:,} features, and their places for {self.workers} workers", (8 + 4 * self.workers) * d)
        if self.options.record.in_memory:
            rows = 0 if manifest.backend == "memory" and len(manifest.shards) == 1 else whole_bytes(manifest)
            if self.options.kernel == "rbf":  # the copy made then
                rows += (8 + entry_bytes(manifest)) * manifest.statistics.nnz + 24 * (m + 1)
            more = [("all rows", rows), ("support rows at most", whole_bytes(manifest)), ("dual variables", _SMO_BYTES * m)]
            return Needs(0, row_cache=self._cache_wanted(m), more=(dense, *more))
        share = min(1.0, self._most_columns(m) / m)
        batch = min(self.options.batch or 1, m)
        more = [
            (f"responses, {_ROUND_BYTES} bytes × {m:,} rows", _ROUND_BYTES * m),
            ("support rows at most", int(share * (whole_bytes(manifest) + _SUPPORT_BYTES * m)) + 1),
            ("rows of a batch", 8 * batch * batch + 16 * batch * manifest.statistics.max_row_nnz),
            ("block of rows", self.workers * 8 * WIDTH * WIDTH * manifest.statistics.max_row_nnz),
        ]
        if manifest.backend != "memory":
            more.append(("buffers to fetch support rows", buffer_bytes(manifest)))
        if self.held_out is not None:
            own = 0 if self.held_out.path is None else buffer_bytes(self.held_out.manifest)
            more.append(("scoring held-out rows", _SCORING_BYTES + own))
        return Needs(0, more=(dense, *more))

    def _most_columns(self, m: int) -> float:
        """The most rows that steps can change."""
        epochs = self._epochs
        return (np.inf if epochs is None else epochs * m) + (self.options.batch or 1)

    @property
    def _epochs(self) -> float | None:
        return self.options.epochs or (None if self.options.max_time else _EPOCHS)

    def _cache_wanted(self, m: int) -> tuple[int, int]:
        """(least, most) bytes of the caches of kernel columns: two columns each, and all columns."""
        least, most = 8 * m * (1 + self.sharing), 4 * m * m * (1 + self.sharing)
        if self.options.kernel_cache == "auto":
            return least, max(least, most)
        size = max(parse_size(self.options.kernel_cache, option="kernel_cache", total=most), least)
        return size, size

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        validation = None if self.held_out is None else self.held_out.manifest.fingerprint
        return identity(self.options, fingerprint, validation=validation, positive_label=self.labels[1])

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> KernelModel:
        return self._solved(runner, progress, plan, self._kernel(runner), None)

    def solve_each(self, runner: Runner, progress: Callable[[], Progress], plan: MemoryPlan) -> list[KernelModel]:
        """A model for each label of the data against the rest; `plan` is of a job that is `sharing`."""
        statistics, kernel = runner.feed.data.manifest.statistics, self._kernel(runner)
        shared = SharedColumns(statistics.n_rows, plan.row_cache // 2) if self.options.record.in_memory else None
        found = []
        for label in sorted(statistics.labels or {}):
            negative, positive, rest = two_labels(statistics, label)
            own = replace(self, options=replace(self.options, positive_label=label), labels=(negative, positive), rest=rest)
            found.append(own._solved(runner, progress(), plan, kernel, shared))
        return found

    def _kernel(self, runner: Runner) -> Kernel:
        return centred_kernel(chosen_kernel(self.options, runner.feed), runner.feed)

    def _solved(
        self, runner: Runner, progress: Progress, plan: MemoryPlan, kernel: Kernel, shared: SharedColumns | None
    ) -> KernelModel:
        make = partial(self._by_smo, shared=shared) if self.options.record.in_memory else self._by_rounds
        manifest = runner.feed.data.manifest
        return replace(
            make(runner, progress, plan, kernel),
            solver=self.options.chosen_solver,
            parameters=self.options.as_dict(),
            fingerprint=manifest.fingerprint,
        )

    def _by_smo(
        self, runner: Runner, progress: Progress, plan: MemoryPlan, kernel: Kernel, shared: SharedColumns | None
    ) -> KernelModel:
        options = self.options
        rows, _ = read_whole(runner.feed)
        signs = np.where(rows.y == self.labels[1], 1, -1).astype(np.int8)
        upper = options.C * np.where(signs > 0, options.positive_weight, 1.0)
        if rows.weight is not None:
            upper *= rows.weight
        d, c_bar = runner.feed.data.manifest.statistics.n_features, float(upper.sum())
        state = smo.SMO(
            kernel.moved(rows), kernel, signs, upper, dimension=d, bias=options.bias != 0.0,
            cache_bytes=plan.row_cache // (1 + self.sharing), workers=self.workers, shared=shared,
        )  # fmt: skip
        if not state.diagonal.max() <= _LARGEST:
            raise BadInputError(
                f"kernel: values of {options.kernel} reach {state.diagonal.max():g}, too large for float32, which kernel columns "
                "are; scale the features"
            )
        value, reason, history = smo.run(state, progress, c_bar)
        (support,) = np.nonzero(state.alpha)
        certificate = Certificate(
            value.primal, value.dual, c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason,
            raised=value.raised,
        )  # fmt: skip
        return self._model(
            kernel,
            take(rows, support),
            state.alpha[support] * signs[support],
            value.intercept,
            reason=reason,
            certificates=(certificate,),
            facts={"evaluations": state.evaluations, "steps": state.steps},
            history=[by_name(stage) for stage in history],
            dimension=d,
        )

    def _by_rounds(self, runner: Runner, progress: Progress, plan: MemoryPlan, kernel: Kernel) -> KernelModel:
        responses = Responses(runner, kernel, self.labels[1], averaged=self.options.record.averages)
        d = runner.feed.data.manifest.statistics.n_features

        def model(alpha: np.ndarray, intercept: float, **known: Any) -> KernelModel:
            rows, coefficients = responses.support(alpha)
            return self._model(kernel, rows, coefficients, intercept, dimension=d, **known)

        def error(alpha: np.ndarray, intercept: float) -> float:
            assert self.held_out is not None
            return error_of(model(alpha, intercept), self.held_out)

        solver = self._round_solver(responses)
        fit = kernel_iterations.run(solver, progress, self._epochs, None if self.held_out is None else error)
        history = kernel_iterations.as_records(fit.history)
        facts = {name: value for name, value in history[-1].items() if name not in ("iteration", "seconds") and value is not None}
        return model(fit.alpha, fit.intercept, reason=fit.reason, facts=facts, history=history)

    def _round_solver(self, responses: Responses) -> KernelSolver:
        options, batch = self.options, self.options.batch or 1
        if not responses.diagonal.max() > 0.0:
            raise BadInputError("k(x, x) is 0 for every row: there is nothing to learn from")
        given: dict[str, Any] = {"batch": batch, "random": np.random.default_rng(options.seed)}
        if options.nu is not None:
            given["nu"] = options.nu
        elif "C" in options.record.options:
            given["C"] = options.C
        if options.record.intercept:
            given["bias"] = options.bias != 0.0
        return options.record.algorithm("binary")(responses, **given)

    def _model(
        self, kernel: Kernel, rows: Chunk, coefficients: np.ndarray, intercept: float, *, dimension: int, **known: Any
    ) -> KernelModel:
        values = np.ones(rows.nnz) if rows.data is None else rows.data.astype(np.float64)
        options = self.options
        return KernelModel(
            support=sp.csr_array((values, rows.indices, rows.indptr), shape=(rows.n_rows, dimension)),
            coefficients=np.ascontiguousarray(coefficients, np.float64),
            kernel=kernel,
            labels=self.labels,
            C=float(options.C),
            intercept=float(intercept),
            positive_weight=float(options.positive_weight),
            rest=self.rest,
            **known,
        )


def error_of(model: KernelModel, data: Dataset) -> float:
    """The error rate of `model` on `data`. Raises BadInputError for labels that it does not know."""
    feed, m, wrong = Feed(data), data.manifest.statistics.n_rows, 0
    for block in feed.blocks(0, m, feed.buffers(), Traffic()):
        said = model.score_chunk(block) > 0.0
        wrong += int(np.count_nonzero(said != model.is_positive(block.y, block.first_row)))
    return wrong / m
