"""Kernel models on a budget, from a stream of rows: BSCA and BSGD, for two classes, one-vs-rest, or regression."""

from __future__ import annotations

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from streamcut.compiled import budget as passes
from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.epochs import Epochs, epochs_bytes
from streamcut.execution.passes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.shown import by_name
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Job
from streamcut.jobs.kernel_data import centred_kernel, check_norms, chosen_kernel, measured, validation_rows
from streamcut.jobs.linear import problem_on, threads_wanted
from streamcut.kernels.kernel import Kernel
from streamcut.losses import row_loss
from streamcut.models.certificate import StopReason
from streamcut.models.files import as_model
from streamcut.models.kernel import KernelModel
from streamcut.oracles.variance import mean_target
from streamcut.problem import Problem
from streamcut.solvers.budget import MODES, Budgeted, BudgetProblem, BudgetState, Method, Training, filled, new_slots, slots_bytes
from streamcut.solvers.progress import Progress

BUDGET = 500
EPOCHS = 1.0


@dataclass(frozen=True)
class BudgetedJob(Job):
    """`targets` are the labels separated from the rest: one of two classes, or each of K; of a regression one dummy target.

    `start`: the initial model, None for an empty one; its labels are the training labels, regardless of the data's.
    """

    problem: Problem
    targets: tuple[float, ...]
    budget: int | None
    fingerprint: str
    start: KernelModel | None = None
    distributable: ClassVar[bool] = False

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        if options.chosen_maintenance == "merge" and options.kernel != "rbf":
            raise UsageError(f"maintenance: merging is for kernel rbf; with {options.kernel} take project or remove")
        check_norms(statistics)
        start = None if options.warm_start is None else _start(options, manifest)
        if start is None:
            problem = problem_on(options, statistics)
        else:
            problem = options.problem(labels=start.labels, rest=start.problem.rest)
        labels = problem.labels or (math.nan,)
        targets = labels[1:] if problem.task == "binary" else labels
        budget = None if options.maintenance == "none" else options.budget or BUDGET
        if budget is not None:
            budget = min(budget, statistics.n_rows + _vectors(start))
            if _vectors(start) > budget:
                raise UsageError(f"warm_start: the model has {_vectors(start):,} vectors, but budget is {budget:,}")
        workers = min(threads_wanted(options), len(targets))
        lanes = plan_lanes(statistics, 1)
        return cls(options, lanes, workers, problem, targets, budget, manifest.fingerprint, start)

    def needs(self, manifest: Manifest) -> Needs:
        problem, mode = self._rows_and_costs(manifest, Kernel(self.options.kernel)), MODES[self.options.chosen_maintenance]
        slots = len(self.targets) * slots_bytes(problem, self.budget, mode)
        vectors = problem.slots(None) if self.budget is None else self.budget
        return Needs(
            dimension=0,
            row_bytes=8 * len(self.targets) * self._method.has_alpha,
            more=(
                (f"{len(self.targets)} × {vectors:,} vectors × {manifest.statistics.n_features:,} features", slots),
                ("shards in random order", epochs_bytes(manifest, ahead=self._ahead)),
            ),
        )

    @property
    def _ahead(self) -> bool:
        return self.options.scheduler != "sync"

    def decided(self, plan: MemoryPlan) -> dict[str, object]:
        return {"warm_start": None if self.start is None else _digest(self.start)}

    @property
    def _method(self) -> Method:
        return self.options.record.algorithm(self.options.kind)

    def solve(self, runner: Runner, progress: Progress, plan: MemoryPlan) -> KernelModel:
        options, feed = self.options, runner.feed
        kernel = self.start.kernel if self.start is not None and self.start.n_support else chosen_kernel(options, feed)
        kernel = centred_kernel(kernel, feed)
        problem, mode = self._rows_and_costs(feed.data.manifest, kernel), MODES[options.chosen_maintenance]
        if problem.of_numbers:
            offset = mean_target(feed) if self.start is None else float(self.start.intercept)
            problem = replace(problem, offset=offset)
        method = self._method
        state = BudgetState([new_slots(problem, self.budget, mode) for _ in self.targets])
        if self.start is not None:
            self._begin(self.start, state, method, kernel)
        if method.has_alpha:
            runner.row_state.add("duals", np.float64, (len(self.targets),))
        epochs = Epochs(feed, options.seed + state.before, ahead=self._ahead)  # a different order than last time
        held_out = validation_rows(options, feed.data.manifest.statistics, self.problem)

        def measure(models: list[tuple[np.ndarray, np.ndarray]]) -> float | None:
            assert held_out is not None
            return measured(self._model(Budgeted(models, StopReason.EPOCHS, []), problem), held_out)

        with ThreadPoolExecutor(self.workers, "target") as pool:
            training = Training(
                method, problem, mode, state, epochs, progress, runner, pool, None if held_out is None else measure
            )
            result = training.run(options.epochs or EPOCHS)
        if result.reason is StopReason.INTERRUPTED and not result.history:
            raise Interrupted
        return self._model(result, problem)

    def _rows_and_costs(self, manifest: Manifest, kernel: Kernel) -> BudgetProblem:
        statistics, options = manifest.statistics, self.options
        n, before = statistics.n_rows, 0
        if self.start is not None:
            same = self.start.fingerprint == self.fingerprint
            before = max(self.start.facts.get("rows_seen", 0) - same * n, 0)
        return BudgetProblem(
            kernel, options.C, self.targets, n, statistics.n_features, options.positive_weight,
            rows_before=before, vectors_before=_vectors(self.start), loss=row_loss(options.chosen_loss, options.as_dict()),
        )  # fmt: skip

    def _model(self, result: Budgeted, problem: BudgetProblem) -> KernelModel:
        options = self.options
        last = by_name(result.history[-1]) if result.history else {}
        names = ("epoch", "accuracy_met", "primal_met", "dual", "maintained", "degradation", "kernel_evaluations", "validation")
        shown = {name: last[name] for name in names if last.get(name) is not None}
        return KernelModel(
            **_support(result.models),
            kernel=problem.kernel,
            problem=self.problem,
            intercept=problem.offset,
            reason=result.reason,
            facts={**shown, "steps": result.steps, "rows_seen": result.rows_seen},
            solver=options.chosen_solver,
            history=[by_name(line) for line in result.history],
            parameters={**options.as_dict(), "gamma": problem.kernel.gamma, "budget": self.budget},
            fingerprint=self.fingerprint,
        )

    def _begin(self, start: KernelModel, state: BudgetState, method: Method, kernel: Kernel) -> None:
        """Fill the models of `state` with the vectors of `start`; the α of these rows stay 0."""
        state.before = start.facts.get("steps", 0)
        coefficients = start.coefficients.reshape(start.n_support, len(self.targets))
        for number, slots in enumerate(state.models):
            slots.counts[passes.STEPS] = state.before
            kept = np.flatnonzero(coefficients[:, number])
            vectors = np.zeros((len(kept), slots.V.shape[0]))
            vectors[:, : start.n_features] = start.support[kept].toarray()
            filled(slots, coefficients[kept, number] / method.scale(slots), vectors, kernel)


def _start(options: TrainOptions, manifest: Manifest) -> KernelModel:
    """The model `warm_start`. Raises UsageError when it does not fit the data and options, and what load_model raises."""
    name, statistics = options.as_dict()["warm_start"], manifest.statistics
    task = "binary" if options.task == "auto" else options.task
    model = as_model(options.warm_start)
    jointly = task == "multiclass" and isinstance(model, KernelModel) and model.problem.strategy != options.record.strategy
    if not isinstance(model, KernelModel) or model.task != task or jointly:
        raise UsageError(f"warm_start: {name} is of task {model.task} by {model.solver}; it takes a kernel model of task {task}")
    labels = "the labels " + ", ".join(f"{label:g}" for label in model.labels or ())
    if not model.labels:
        if options.chosen_loss != model.problem.loss:
            raise UsageError(f"warm_start: {name} was trained with loss {model.problem.loss}; use the same")
    elif not model.problem.rest and not set(statistics.labels or [math.nan]) <= set(model.labels):
        raise UsageError(f"warm_start: {name} knows only {labels}, but the data has others")
    elif options.positive_label not in (None, model.labels[-1]):
        raise UsageError(
            f"warm_start: {name} has {labels}, of which {model.labels[-1]:g} is the positive one; see --positive-label"
        )
    if model.n_features > statistics.n_features:
        raise UsageError(
            f"warm_start: {name} has {model.n_features:,} features, but the data has {statistics.n_features:,}; "
            "convert the data with --n-features"
        )
    if np.any(model.intercept) and model.labels:
        raise UsageError(f"warm_start: {name} has an intercept, and {options.chosen_solver} has none")
    if not model.n_support:
        return model
    its = {"kernel": model.kernel.name, **model.kernel.as_dict()}
    matter = {"linear": ("kernel",), "rbf": ("kernel", "gamma"), "poly": ("kernel", "gamma", "degree", "coef0")}[its["kernel"]]
    if any(getattr(options, option) not in (its[option], "auto") for option in matter):
        wanted = ", ".join(f"{option} {its[option]}" for option in matter)
        raise UsageError(f"warm_start: {name} was trained with {wanted}; use the same")
    if not options.record.algorithm(options.kind).has_alpha and "steps" not in model.facts:
        raise UsageError(
            f"warm_start: {name} does not record how many steps it took, from which {options.chosen_solver} continues; "
            "bsca does not need it"
        )
    return model


def _vectors(start: KernelModel | None) -> int:
    """The most vectors that the initial model has for a target."""
    return 0 if start is None else int(np.max(np.count_nonzero(start.coefficients, axis=0), initial=0))


def _digest(start: KernelModel) -> str:
    """SHA-256 of its scores and steps: runs from the same starting point share it."""
    digest, rows = hashlib.sha256(repr((start.kernel, sorted(start.facts.items()))).encode()), start.support
    for array in (rows.indptr, rows.indices, rows.data, start.coefficients, np.asarray(start.intercept)):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _support(models: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """`support` and `coefficients` of a KernelModel: each target's vectors have coefficients for its own score only."""
    support = sp.vstack([sp.csr_array(vectors) for _, vectors in models], format="csr")
    if len(models) == 1:
        return {"support": support, "coefficients": models[0][0]}
    coefficients = np.zeros((support.shape[0], len(models)))
    at = 0
    for number, (column, _) in enumerate(models):
        coefficients[at : at + len(column), number] = column
        at += len(column)
    return {"support": support, "coefficients": coefficients}
