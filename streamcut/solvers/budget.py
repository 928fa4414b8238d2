"""The common part of BSCA and BSGD: the model on a budget, epochs over shuffled rows, reports, checkpoints and results.

One model for two classes and for regression; for K classes K one-vs-rest models, trained on the same rows together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np

from streamcut.compiled import budget as passes
from streamcut.compiled.budget import Slots, SparseRows
from streamcut.compiled.merging import merging_tables
from streamcut.execution.epochs import Epochs
from streamcut.execution.row_state import Rows, RowState
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.centre import Centre
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.solvers.budget_problem import Problem
from streamcut.solvers.progress import Progress

MODES = {"none": passes.KEEP, "merge": passes.MERGE, "remove": passes.REMOVE, "project": passes.PROJECT}
_DAMPED = 0.5  # of an epoch, at the end of training: the steps of BSCA fall to 0
_STEPS = 8192  # rows between two checks of the clock and of requests to stop
_tables = cache(merging_tables)  # one for all models
Damping = tuple[int, int]  # steps shrink from the first number on, and vanish at the second
_AT_ONCE = 256  # vectors whose kernel values with all others are held at once
_KEPT = ("beta", "square", "source", "K", "counts", "sums")  # of Slots: kept in a checkpoint in addition to the vectors


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of an epoch; counts are totals over all classes' models so far, losses those of the last epoch.

    accuracy_met, primal_met   share of correctly classified rows, and F, from scores of rows when visited, before they were
                               learnt from: in the first epoch every row is held out (of K classes: mean and sum over the
                               models; of numbers there is no accuracy)
    dual          Σ yα − ε|α| − ½‖w‖² with the w of the budgeted model; None for BSGD, and where α of an earlier training is
                  unknown
    maintained    share of the steps followed by budget maintenance
    degradation   Σ of the squared distances by which maintenance moved w
    bytes_read, bytes_computed   decoded from storage, and of all rows visited
    validation    accuracy on validation rows, R² for regression; None without any
    """

    epoch: float
    rows: int
    seconds: float
    accuracy_met: float | None
    primal_met: float
    dual: float | None
    support_vectors: int
    updates: int
    maintained: float
    removed: int
    degradation: float
    kernel_evaluations: int
    bytes_read: int
    bytes_computed: int
    validation: float | None

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        shown = {
            "epoch": f"{self.epoch:g}",
            "rows": f"{self.rows:,}",
        }
        if self.accuracy_met is not None:
            shown["accuracy"] = f"{100 * self.accuracy_met:.2f} %"
        shown["primal"] = f"{self.primal_met:.4g}"
        if self.dual is not None:
            shown["dual"] = f"{self.dual:.4g}"
        if self.validation is not None:
            shown["validation"] = f"{self.validation:.4f}" if self.accuracy_met is None else f"{100 * self.validation:.2f} %"
        return {**shown, "vectors": f"{self.support_vectors:,}", "maintained": f"{100 * self.maintained:.1f} %"}


class Method(Protocol):
    """The update rule of a model: BSCA or BSGD."""

    has_alpha: ClassVar[bool]  # one dual variable per row and target, `duals` in the row state

    def steps(
        self,
        order: np.ndarray,
        rows: SparseRows,
        alpha: np.ndarray | None,
        damping: Damping,
        problem: Problem,
        mode: int,
        model: Slots,
    ) -> None:
        """Learn from the rows `order`, in place on the model and their α; `damping` is for steps without a rate of their own."""

    def scale(self, model: Slots) -> float:
        """The factor of model.beta that gives β."""


def new_slots(problem: Problem, budget: int | None, mode: int) -> Slots:
    """An empty model with room for `budget` + 1 vectors; without a budget, for every row."""
    d, slots = problem.n_features, problem.slots(budget)
    counts = np.zeros(passes.COUNTS, np.int64)
    counts[passes.HOLE] = -1
    matrix = slots if mode == passes.PROJECT else 0
    return Slots(
        aligned_zeros(d, -(-slots // 8) * 8), np.zeros((0 if mode == passes.KEEP else slots, d)), np.zeros(slots),
        aligned_zeros(slots), np.full(slots, -1, np.int64), np.zeros((matrix, matrix)), counts, np.zeros(passes.SUMS),
        aligned_zeros(slots), aligned_zeros(slots), np.empty(d, np.int32), np.empty(d), np.empty(slots, np.int32),
        _tables(),
    )  # fmt: skip


def aligned_zeros(*shape: int) -> np.ndarray:
    """float64 zeros aligned to a cache line: reads across two lines cost double, a quarter of an evaluation."""
    size = int(np.prod(shape))
    room = np.zeros(size + 7)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + size].reshape(shape)


def slots_bytes(problem: Problem, budget: int | None, mode: int) -> int:
    """Bytes of one such model."""
    d, slots = problem.n_features, problem.slots(budget)
    vectors = 2 if mode == passes.KEEP else 3  # including a copy for `exported`
    tables = 3 * 8 * 260**2
    return 8 * (vectors * d * (slots + 8) + 6 * slots + 2 * d + (slots**2 if mode == passes.PROJECT else 0)) + tables


def exported(model: Slots, scale: float, centre: Centre | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n,) and vectors (n, d), copied, of the used slots; they were shifted by `centre`."""
    kept = np.flatnonzero(model.beta[: model.counts[passes.USED]])
    vectors = model.R[kept] if len(model.R) else model.V[:, kept].T
    return model.beta[kept] * scale, vectors if centre is None else centre.moved_back(vectors)


def filled(model: Slots, coefficients: np.ndarray, vectors: np.ndarray, kernel: Kernel) -> None:
    """Put `coefficients` (n,) and `vectors` (n, d) into an empty model with room for them."""
    n = len(coefficients)
    if kernel.centre is not None:
        vectors = kernel.centre.moved_there(vectors)
    model.V[:, :n], model.beta[:n], model.square[:n] = vectors.T, coefficients, np.einsum("ij,ij->i", vectors, vectors)
    if len(model.R):
        model.R[:n] = vectors
    if len(model.K):
        model.K[:n, :n] = kernel.matrix(vectors, vectors)
    model.counts[passes.USED] = n


def squared_norm(model: Slots, scale: float, kernel: Kernel) -> float:
    """‖w‖² of the current model, a few hundred vectors at a time."""
    used, total = int(model.counts[passes.USED]), 0.0
    coefficients, vectors = model.beta[:used] * scale, model.R[:used] if len(model.R) else model.V[:, :used].T
    for start in range(0, len(coefficients), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        total += float(coefficients[some] @ (kernel.matrix(vectors[some], vectors) @ coefficients))
    return total


@dataclass(slots=True)
class BudgetState:
    """The full state of training between two blocks of steps, apart from the rows' α, and hence the checkpoint.

    All models have made the same number of steps, which gives the position in the epoch; `before` of them in earlier trainings.
    """

    models: list[Slots]
    before: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        return int(self.models[0].counts[passes.STEPS]) - self.before

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays: dict[str, np.ndarray] = {}
        for number, m in enumerate(self.models):
            names = (*_KEPT, "R") if len(m.R) else (*_KEPT, "V")  # one is the other transposed
            arrays |= {f"{number}.{name}": array for name in names if (array := getattr(m, name)).size}
        return {"seconds": self.seconds}, arrays

    def restore(self, found: StoredCheckpoint) -> None:
        """Restore the saved state, bit for bit."""
        self.seconds = found.record["state"]["solver"]["seconds"]
        expected = self.saved()[1]
        for number, m in enumerate(self.models):
            for name in (*_KEPT, "R", "V"):
                if f"{number}.{name}" in expected:
                    found.read_into(f"{number}.{name}", getattr(m, name))
            if len(m.R):
                m.V[:, : len(m.R)] = m.R.T


@dataclass(frozen=True, slots=True)
class Budgeted:
    """The result of training: for each target coefficients (n,) and vectors (n, d); why it ended; its epochs.

    steps, rows_seen   of the model over all its trainings
    """

    models: list[tuple[np.ndarray, np.ndarray]]
    reason: StopReason
    history: list[Epoch]
    steps: int = 0
    rows_seen: int = 0


@dataclass(slots=True)
class Training:
    """One run of `method` on `problem`, from `state` or the checkpoint found by `progress`.

    row_state, rows   hold `duals` (n, targets), the α, if the method has any
    measure           returns the accuracy, or R², on validation rows for (coefficients, vectors) of all targets; called after
                      each epoch
    pool              runs several targets in parallel
    """

    method: Method
    problem: Problem
    mode: int
    state: BudgetState
    epochs: Epochs
    progress: Progress
    row_state: RowState
    rows: Rows
    measure: Callable[[list[tuple[np.ndarray, np.ndarray]]], float | None] | None = None
    pool: Executor | None = None
    _started: float = 0.0
    _damping: Damping = (0, 1)

    def run(self, epochs: float) -> Budgeted:
        """Run `epochs` epochs, the last one possibly partial."""
        found = None if self.progress.checkpoints is None else self.progress.checkpoints.found
        if found is not None:
            self._resume(found)
        self._started = self.progress.started - self.state.seconds
        n, goal = self.problem.n_rows, round(epochs * self.problem.n_rows)
        last = self.state.before + goal
        self._damping = last - round(_DAMPED * min(n, goal)), last
        history: list[Any] = self.progress.history
        reason = None
        while reason is None and self.state.steps < goal:
            epoch, done = divmod(self.state.steps, n)
            if done == 0:
                for m in self.state.models:
                    m.counts[passes.CORRECT] = m.sums[passes.LOSS] = 0
            reason = self._epoch(epoch, done, min(n, goal - epoch * n))
            if reason is not None:
                self.progress.save(self.state, self)  # type: ignore[arg-type]  # before a partial epoch enters the history
            if self.state.steps > epoch * n:
                history.append(self._record(epoch))
                if self.progress.observe is not None:
                    self.progress.observe(history[-1])
        done = self.state.steps
        seen = self.problem.rows_before + min(done, n)
        return Budgeted(self._exported(), reason or StopReason.EPOCHS, history, self.state.before + done, seen)

    def _epoch(self, epoch: int, done: int, goal: int) -> StopReason | None:
        """Steps `done` to `goal` of an epoch; returns why to stop early, or None."""
        for group in self.epochs.groups(epoch, done):
            for start in range(0, len(group.order), _STEPS):
                reason = self._reason()
                if reason is not None or done == goal:
                    return reason
                order = group.order[start : start + min(_STEPS, goal - done)]
                self._learn(order, group.rows)
                done += len(order)
                self.state.seconds = time.monotonic() - self._started
                if self.progress.checkpoints is not None and self.progress.checkpoints.due():
                    self.progress.save(self.state, self)  # type: ignore[arg-type]
            self.row_state.release(group.rows.first_row, group.rows.first_row + group.rows.n_rows)
        return None

    def _learn(self, order: np.ndarray, chunk: Chunk) -> None:
        first = chunk.first_row

        def learn(number: int) -> None:
            alpha = self.rows["duals"][first : first + chunk.n_rows, number] if self.method.has_alpha else None
            rows = self.problem.rows(chunk, self.problem.targets[number])
            self.method.steps(order, rows, alpha, self._damping, self.problem, self.mode, self.state.models[number])

        numbers = range(len(self.state.models))
        for _ in map(learn, numbers) if self.pool is None else self.pool.map(learn, numbers):
            pass

    def _reason(self) -> StopReason | None:
        most = self.progress.rule.max_time
        if most is not None and time.monotonic() - self._started >= most:
            return StopReason.TIME
        return StopReason.INTERRUPTED if self.progress.stop() else None

    def _exported(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [exported(m, self.method.scale(m), self.problem.kernel.centre) for m in self.state.models]

    def _record(self, epoch: int) -> Epoch:
        models, n = self.state.models, self.problem.n_rows
        counts, sums = np.sum([m.counts for m in models], axis=0), np.sum([m.sums for m in models], axis=0)
        steps, inside = self.state.steps, self.state.steps - epoch * n
        square = sum(squared_norm(m, self.method.scale(m), self.problem.kernel) for m in models)
        now = self._exported()
        return Epoch(
            epoch=steps / n,
            rows=steps,
            seconds=time.monotonic() - self._started,
            accuracy_met=None if self.problem.of_numbers else int(counts[passes.CORRECT]) / (inside * len(models)),
            primal_met=0.5 * square + float(sums[passes.LOSS]) * n / inside,
            dual=float(sums[passes.ALPHA]) - 0.5 * square if self.method.has_alpha and not self.problem.vectors_before else None,
            support_vectors=sum(len(coefficients) for coefficients, _ in now),
            updates=int(counts[passes.UPDATES]),
            maintained=int(counts[passes.MAINTAINED]) / (steps * len(models)),
            removed=int(counts[passes.REMOVED]),
            degradation=float(sums[passes.DEGRADATION]),
            kernel_evaluations=int(counts[passes.EVALUATIONS]),
            bytes_read=self.epochs.traffic.bytes_read,
            bytes_computed=self.epochs.traffic.bytes_computed,
            validation=None if self.measure is None else self.measure(now),
        )

    def _resume(self, found: StoredCheckpoint) -> None:
        with found.restoring():
            self.state.restore(found)
            if self.method.has_alpha:
                found.read_into("duals", self.rows["duals"], self.release)
            self.progress.history = [Epoch(*line) for line in found.record["state"]["history"]]  # type: ignore[misc]

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a checkpoint keeps in addition to the state: α."""
        return {}, {"duals": self.rows["duals"]} if self.method.has_alpha else {}

    def release(self) -> None:
        """Release α, which is not used for a while."""
        self.row_state.release(0, self.problem.n_rows)
