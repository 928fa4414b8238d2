"""Kernel models on a budget, from a stream of rows: BSCA and BSGD, for two classes or one class against the rest for each."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.epochs import Epochs, epochs_bytes
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import Interrupted, PassRunner
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Manifest
from streamcut.jobs.job import Needs
from streamcut.jobs.kernel_choice import chosen_kernel
from streamcut.jobs.linear import on_few_rows, threads_wanted, two_labels
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import StopReason
from streamcut.models.files import load_model
from streamcut.models.kernel import KernelModel
from streamcut.solvers.bsca import Bsca
from streamcut.solvers.bsgd import Bsgd
from streamcut.solvers.budget import MODES, Budgeted, BudgetState, Method, Problem, Training, filled, new_slots, slots_bytes
from streamcut.solvers.progress import Progress

BUDGET = 500
EPOCHS = 1.0
_DECIDING = (  # options that decide which bits come out
    "C", "kernel", "gamma", "degree", "coef0", "maintenance", "damping", "seed", "epochs", "positive_weight", "warm_start",
)  # fmt: skip
_METHODS: dict[str, type[Method]] = {"bsca": Bsca, "bsgd": Bsgd}
_MEANINGLESS = {"bias": "has no bias", "tol": "proves no gap", "tol_relative": "proves no gap"}


@dataclass(frozen=True)
class BudgetedJob:
    """What is to be computed. `targets` are the labels that are told from the rest: one of two classes, or each of K."""

    options: TrainOptions
    labels: tuple[float, ...]
    targets: tuple[float, ...]
    rest: bool
    budget: int | None
    fingerprint: str
    lanes: Lanes
    workers: int
    distributable: ClassVar[bool] = False

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics, solver = manifest.statistics, options.chosen_solver
        for name, why in _MEANINGLESS.items():
            if getattr(options, name) not in (TrainOptions.__dataclass_fields__[name].default, 0.0, None):
                raise UsageError(f"{name}: {getattr(options, name)!r} means nothing to {solver}, which {why}; leave it out")
        if options.maintenance == "merge" and options.kernel != "rbf":
            raise UsageError(f"maintenance: merging is for kernel rbf; with {options.kernel} take project or remove")
        if options.warm_start is not None and solver != "bsca":
            raise UsageError(f"warm_start: {solver} forgets its first steps as it goes, and what it starts from with them")
        labels: tuple[float, ...]
        targets: tuple[float, ...]
        if options.task in ("auto", "binary"):
            negative, positive, rest = two_labels(statistics, options.positive_label)
            labels, targets = (negative, positive), (positive,)
        elif options.task == "multiclass":
            if statistics.labels is None or len(statistics.labels) < 2:
                raise BadInputError("task multiclass: the data needs 2 to 4096 different labels")
            labels = targets = tuple(sorted(statistics.labels))
            rest = False
        else:
            raise UsageError(f"task: {solver} does binary and multiclass, not {options.task}")
        budget = None if options.maintenance == "none" else options.budget or BUDGET
        if budget is not None:
            budget = min(budget, statistics.n_rows)
        workers = min(threads_wanted(options), len(targets))
        lanes = plan_lanes(statistics, 1)
        return cls(options, labels, targets, rest, budget, manifest.fingerprint, lanes, workers)

    def needs(self, manifest: Manifest) -> Needs:
        problem, mode = self._problem(manifest, Kernel(self.options.kernel)), MODES[self.options.maintenance]
        slots = len(self.targets) * slots_bytes(problem, self.budget, mode)
        vectors = manifest.statistics.n_rows if self.budget is None else self.budget
        groups = epochs_bytes(manifest, ahead=self._ahead)
        return Needs(
            dimension=0,
            row_bytes=8 * len(self.targets) * _METHODS[self.options.chosen_solver].has_alpha,
            more=(
                (f"{len(self.targets)} × {vectors:,} vectors × {manifest.statistics.n_features:,} features", slots),
                ("groups of shuffled rows", groups),
            ),
        )

    @property
    def _ahead(self) -> bool:
        return self.options.scheduler != "sync"

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        fixed = {"data": fingerprint, "solver": self.options.chosen_solver, "targets": self.targets, "budget": self.budget}
        return {**fixed, **{name: getattr(self.options, name) for name in _DECIDING}}

    def warm_up(self, manifest: Manifest) -> None:
        y = np.resize(np.asarray(self.labels), 8)
        few = replace(self.options, validation=None, warm_start=None, epochs=2.0)
        on_few_rows(manifest, y, self.workers, replace(self, options=few, budget=None if self.budget is None else 2).solve)

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> KernelModel:
        options, feed = self.options, runner.feed
        kernel = chosen_kernel(options, feed)
        problem, mode = self._problem(feed.data.manifest, kernel), MODES[options.maintenance]
        method = _METHODS[options.chosen_solver]()
        models = [new_slots(problem, self.budget, mode) for _ in self.targets]
        if options.warm_start is not None:
            self._start_from(options.warm_start, problem, models)
        if method.has_alpha:
            runner.row_state.add("alpha", np.float64, (len(self.targets),))
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(self.workers, "target")) if self.workers > 1 else None
            epochs = Epochs(feed, options.seed, ahead=self._ahead)
            measure = self._measure(problem) if options.validation is not None else None
            training = Training(
                method, problem, mode, BudgetState(models), epochs, progress, runner.row_state, runner.rows,
                measure=measure, pool=pool, damped=options.damping,
            )  # fmt: skip
            found = training.run(options.epochs or EPOCHS)
        if found.reason is StopReason.INTERRUPTED and not found.history:
            raise Interrupted
        return self._model(found, problem)

    def _problem(self, manifest: Manifest, kernel: Kernel) -> Problem:
        statistics, options = manifest.statistics, self.options
        return Problem(kernel, options.C, self.targets, statistics.n_rows, statistics.n_features, options.positive_weight)

    def _model(self, found: Budgeted, problem: Problem) -> KernelModel:
        options = self.options
        last = asdict(found.history[-1]) if found.history else {}
        shown = ("epoch", "accuracy_met", "primal_met", "dual", "maintained", "degradation", "kernel_evaluations", "validation")
        return KernelModel(
            **_support(found.models),
            kernel=problem.kernel,
            labels=self.labels,
            C=float(options.C),
            positive_weight=float(options.positive_weight),
            rest=self.rest,
            reason=found.reason,
            facts={name: last[name] for name in shown if name in last},
            task="binary" if len(self.targets) == 1 else "multiclass",
            solver=options.chosen_solver,
            history=[asdict(line) for line in found.history],
            parameters={**options.as_dict(), "gamma": problem.kernel.gamma, "budget": self.budget},
            fingerprint=self.fingerprint,
        )

    def _measure(self, problem: Problem) -> Callable[[list[tuple[np.ndarray, np.ndarray]]], float]:
        """Accuracy on the validation rows, which are streamed."""
        from streamcut.io.opening import open_dataset

        assert self.options.validation is not None
        data: Dataset = open_dataset(os.fspath(self.options.validation))
        if data.manifest.statistics.n_features > problem.n_features:
            raise BadInputError(f"validation: {self.options.validation} has more features than the training data")
        buffers = data.buffers()

        def measure(models: list[tuple[np.ndarray, np.ndarray]]) -> float:
            model, right, rows = self._model(Budgeted(models, StopReason.EPOCHS, []), problem), 0, 0
            for shard in range(len(data.manifest.shards)):
                chunk = data.read(shard, buffers)
                said = model.labels_of(model.score_chunk(chunk))
                if len(self.targets) == 1:
                    right += int(np.count_nonzero((said == self.targets[0]) == (chunk.y == self.targets[0])))
                else:
                    right += int(np.count_nonzero(said == chunk.y))
                rows += chunk.n_rows
            return right / rows

        return measure

    def _start_from(self, path: str, problem: Problem, models: list) -> None:
        """Fill `models` with the vectors of a model file; α stay 0. Raises UsageError when it is none for this problem."""
        model = load_model(path)
        if not isinstance(model, KernelModel) or model.kernel != problem.kernel or model.labels != self.labels:
            wanted = ", ".join(f"{name} {value}" for name, value in problem.kernel.as_dict().items())
            raise UsageError(f"warm_start: {path} is no model of labels {self.labels} with kernel {wanted}")
        if model.n_features > problem.n_features:
            raise UsageError(f"warm_start: {path} has more features than the data")
        coefficients = model.coefficients.reshape(model.n_support, -1)
        for number, slots in enumerate(models):
            kept = np.flatnonzero(coefficients[:, number])
            if self.budget is not None and len(kept) > self.budget:
                raise UsageError(f"warm_start: {path} has {len(kept):,} vectors, but budget is {self.budget:,}")
            vectors = np.zeros((len(kept), problem.n_features))
            vectors[:, : model.n_features] = model.support[kept].toarray()
            filled(slots, coefficients[kept, number], vectors, problem.kernel)


def _support(models: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """`support` and `coefficients` of a KernelModel: every target's vectors have coefficients for its own score only."""
    support = sp.vstack([sp.csr_array(vectors) for _, vectors in models], format="csr")
    if len(models) == 1:
        return {"support": support, "coefficients": models[0][0]}
    coefficients = np.zeros((support.shape[0], len(models)))
    at = 0
    for number, (own, _) in enumerate(models):
        coefficients[at : at + len(own), number] = own
        at += len(own)
    return {"support": support, "coefficients": coefficients}
