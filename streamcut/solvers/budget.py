"""The common part of BSCA and BSGD: the problem, the model on a budget, epochs over shuffled rows, checkpoints and results.

One model for two classes and for regression; for K classes K one-vs-rest models, trained on the same rows together.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp

from streamcut.compiled import budget as passes
from streamcut.compiled import kernel_rows
from streamcut.compiled.budget import Slots, SparseRows
from streamcut.compiled.merging import CELLS, least_degradations
from streamcut.execution.epochs import Epochs
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.centre import Centre
from streamcut.kernels.kernel import Kernel
from streamcut.losses.hinge import Hinge
from streamcut.losses.loss import Loss
from streamcut.models.certificate import StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept
from streamcut.solvers.progress import Progress

MODES = {"none": passes.KEEP, "merge": passes.MERGE, "remove": passes.REMOVE, "project": passes.PROJECT}
_DAMPED = 0.5  # of an epoch, at the end of training: the steps of BSCA fall to 0
_STEPS = 8192  # rows between two checks of the clock and of requests to stop
_table = cache(least_degradations)  # one for all models
_AT_ONCE = 256  # vectors whose kernel values with all others are held at once
HINGE = Hinge()
_KEPT = ("beta", "square", "source", "K", "counts", "sums")  # of Slots: kept in a checkpoint in addition to the vectors


@dataclass(frozen=True, slots=True)
class BudgetProblem:
    """min ½‖w‖² + C Σ u_i ℓ(⟨w, φ(x_i)⟩; y_i), once for each of `targets`: rows with that label against all others.

    loss                 one with the dual min ½‖w‖² − Σ y_i α_i + ε|α_i| over a box: the hinge, the ε-insensitive or the
                         quantile loss
    targets              a single unused one for regression
    offset               subtracted from numeric targets: the intercept of the model
    n_rows, n_features   of the data: m, d
    positive_weight      factor on u_i of the rows with the target label
    rows_before          rows of other data on which the initial model was trained
    vectors_before       the most vectors that it has for a target
    """

    kernel: Kernel
    C: float
    targets: tuple[float, ...]
    n_rows: int
    n_features: int
    positive_weight: float = 1.0
    rows_before: int = 0
    vectors_before: int = 0
    loss: Loss = HINGE
    offset: float = 0.0

    @property
    def of_numbers(self) -> bool:
        """Whether this is a regression problem."""
        return self.loss.targets == "numbers"

    @property
    def rows_seen(self) -> int:
        """Rows of this data and of the earlier data."""
        return self.rows_before + self.n_rows

    def slots(self, budget: int | None) -> int:
        """Capacity of a model in vectors: budget + 1, or without a budget all that may come."""
        return self.vectors_before + self.n_rows if budget is None else budget + 1

    def rows(self, chunk: Chunk, target: float) -> SparseRows:
        """`chunk` in the form of compiled code, shifted by the kernel like all vectors in training."""
        chunk = self.kernel.moved(chunk)
        costs = np.full(chunk.n_rows, self.C)
        if self.of_numbers:
            epsilon = float(self.loss.conjugate(1.0, 0.0))  # ℓ*(−f) = ε|f|
            if chunk.weight is not None:
                costs *= chunk.weight
            low, high = costs * self.loss.lowest(0.0), costs * self.loss.highest(0.0)
            return SparseRows(chunk.indptr, chunk.indices, chunk.data, chunk.y - self.offset, low, high, epsilon, chunk.first_row)
        positive = chunk.y == target
        costs[positive] = self.C * self.positive_weight
        if chunk.weight is not None:
            costs *= chunk.weight
        signs, zero = np.where(positive, 1.0, -1.0), np.zeros(chunk.n_rows)
        low, high = np.where(positive, zero, -costs), np.where(positive, costs, zero)
        return SparseRows(chunk.indptr, chunk.indices, chunk.data, signs, low, high, 0.0, chunk.first_row)


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


@dataclass(frozen=True, slots=True)
class Method:
    """The update rule of a model: BSCA or BSGD.

    has_alpha  one dual variable per row and target, `duals` in the row state
    steps      of (order, rows, α or None, damping, problem, mode, model): learns from the rows `order`, in place on the model and
               their α; `damping` (first, last) is for steps without a rate of their own: they shrink from the first number on,
               and vanish at the second
    scale      the factor of model.beta that gives β
    """

    has_alpha: bool
    steps: Callable[..., None]
    scale: Callable[[Slots], float]


def new_slots(problem: BudgetProblem, budget: int | None, mode: int) -> Slots:
    """An empty model with room for `budget` + 1 vectors; without a budget, for every row."""
    d, slots = problem.n_features, problem.slots(budget)
    counts = np.zeros(passes.COUNTS, np.int64)
    counts[passes.HOLE] = -1
    matrix = slots if mode == passes.PROJECT else 0
    return Slots(
        aligned_zeros(d, -(-slots // 8) * 8), np.zeros((0 if mode == passes.KEEP else slots, d)), np.zeros(slots),
        aligned_zeros(slots), np.full(slots, -1, np.int64), np.zeros((matrix, matrix)), counts, np.zeros(passes.SUMS),
        aligned_zeros(slots), aligned_zeros(slots), np.empty(d, np.int32), np.empty(d), np.empty(slots, np.int32),
        _table(),
    )  # fmt: skip


def aligned_zeros(*shape: int) -> np.ndarray:
    """float64 zeros aligned to a cache line: reads across two lines cost double, a quarter of an evaluation."""
    size = int(np.prod(shape))
    room = np.zeros(size + 7)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + size].reshape(shape)


def slots_bytes(problem: BudgetProblem, budget: int | None, mode: int) -> int:
    """Bytes of one such model."""
    d, slots = problem.n_features, problem.slots(budget)
    vectors = 2 if mode == passes.KEEP else 3  # including a copy for `exported`
    return 8 * (vectors * d * (slots + 8) + 6 * slots + 2 * d + (slots**2 if mode == passes.PROJECT else 0) + CELLS)


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
        K = np.empty((n, n))
        kernel_rows.kernel_rows(*_entries(vectors), model.V, model.square[:n], kernel.compiled, model.p, K)
        model.K[:n, :n] = K
    model.counts[passes.USED] = n


def squared_norm(model: Slots, scale: float, kernel: Kernel) -> float:
    """‖w‖² of the current model, a few hundred vectors at a time."""
    used, total = int(model.counts[passes.USED]), 0.0
    coefficients, vectors = model.beta[:used] * scale, model.R[:used] if len(model.R) else model.V[:, :used].T
    for start in range(0, used, _AT_ONCE):
        some = slice(start, min(start + _AT_ONCE, used))
        scores, entries = np.zeros(some.stop - start), _entries(vectors[some])
        kernel_rows.add_sums(*entries, model.V, model.square[:used], coefficients, kernel.compiled, model.p, model.k, scores)
        total += float(coefficients[some] @ scores)
    return total


def _entries(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dense rows as those of a chunk: indptr, indices, data."""
    rows = sp.csr_array(vectors)
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


@dataclass
class BudgetState(Kept):
    """The full state of training between two blocks of steps, apart from the rows' α, and hence the checkpoint.

    All models have made the same number of steps, which gives the position in the epoch; `before` of them in earlier trainings.
    Models that may merge hold their vectors twice, and one copy is kept.
    """

    models: list[Slots]
    before: int = 0

    @property
    def steps(self) -> int:
        return int(self.models[0].counts[passes.STEPS]) - self.before

    def saved(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        arrays: dict[str, np.ndarray] = {}
        for number, m in enumerate(self.models):
            names = (*_KEPT, "R" if len(m.R) else "V")
            arrays |= {f"{number}.{name}": array for name in names if (array := getattr(m, name)).size}
        return {}, arrays

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        for name, array in self.saved()[1].items():
            stored.fill(name, array)
        for m in self.models:
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


@dataclass
class Training(Kept):
    """One run of `method` on `problem`, from `state` or the checkpoint found by `progress`.

    runner   its row state holds `duals` (n, targets), the α, if the method has any
    pool     runs several targets in parallel
    measure  returns the accuracy, or R², on validation rows for (coefficients, vectors) of all targets; called after each epoch
    """

    method: Method
    problem: BudgetProblem
    mode: int
    state: BudgetState
    epochs: Epochs
    progress: Progress
    runner: Runner
    pool: Executor
    measure: Callable[[list[tuple[np.ndarray, np.ndarray]]], float | None] | None = None
    _damping: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        self.kept = ("duals",) * self.method.has_alpha

    @property
    def duals(self) -> np.ndarray:
        """α of all rows and targets."""
        return self.runner.rows["duals"]

    def run(self, epochs: float) -> Budgeted:
        """Run `epochs` epochs, the last one possibly partial."""
        self.progress.resume_with(self, self.state, Epoch)
        n, goal = self.problem.n_rows, round(epochs * self.problem.n_rows)
        last = self.state.before + goal
        self._damping = last - round(_DAMPED * min(n, goal)), last
        reason = None
        while reason is None and self.state.steps < goal:
            epoch, done = divmod(self.state.steps, n)
            if done == 0:
                for m in self.state.models:
                    m.counts[passes.CORRECT] = m.sums[passes.LOSS] = 0
            reason = self._epoch(epoch, done, min(n, goal - epoch * n))
            if reason is not None:
                self.progress.save(self.state, self)  # before a partial epoch enters the history
            if self.state.steps > epoch * n:
                self.progress.see(self._record(epoch))
        done = self.state.steps
        seen = self.problem.rows_before + min(done, n)
        return Budgeted(self._exported(), reason or StopReason.EPOCHS, self.progress.history, self.state.before + done, seen)

    def _epoch(self, epoch: int, done: int, goal: int) -> StopReason | None:
        """Steps `done` to `goal` of an epoch; returns why to stop early, or None."""
        for group in self.epochs.groups(epoch, done):
            for start in range(0, len(group.order), _STEPS):
                reason = self.progress.ended()
                if reason is not None or done == goal:
                    return reason
                order = group.order[start : start + min(_STEPS, goal - done)]
                self._learn(order, group.rows)
                done += len(order)
                self.progress.keep(self.state, self)
            self.runner.row_state.release(group.rows.first_row, group.rows.first_row + group.rows.n_rows)
        return None

    def _learn(self, order: np.ndarray, chunk: Chunk) -> None:
        first = chunk.first_row

        def learn(number: int) -> None:
            alpha = self.duals[first : first + chunk.n_rows, number] if self.method.has_alpha else None
            rows = self.problem.rows(chunk, self.problem.targets[number])
            self.method.steps(order, rows, alpha, self._damping, self.problem, self.mode, self.state.models[number])

        list(self.pool.map(learn, range(len(self.state.models))))

    def _exported(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [exported(m, self.method.scale(m), self.problem.kernel.centre) for m in self.state.models]

    def _record(self, epoch: int) -> Epoch:
        models, n = self.state.models, self.problem.n_rows
        counts, sums = np.sum([m.counts for m in models], axis=0), np.sum([m.sums for m in models], axis=0)
        steps, inside = self.state.steps, self.state.steps - epoch * n
        square = sum(squared_norm(m, self.method.scale(m), self.problem.kernel) for m in models)
        return Epoch(
            epoch=steps / n,
            rows=steps,
            seconds=self.progress.seconds,
            accuracy_met=None if self.problem.of_numbers else int(counts[passes.CORRECT]) / (inside * len(models)),
            primal_met=0.5 * square + float(sums[passes.LOSS]) * n / inside,
            dual=float(sums[passes.ALPHA]) - 0.5 * square if self.method.has_alpha and not self.problem.vectors_before else None,
            support_vectors=sum(int(np.count_nonzero(m.beta[: m.counts[passes.USED]])) for m in models),
            updates=int(counts[passes.UPDATES]),
            maintained=int(counts[passes.MAINTAINED]) / (steps * len(models)),
            removed=int(counts[passes.REMOVED]),
            degradation=float(sums[passes.DEGRADATION]),
            kernel_evaluations=int(counts[passes.EVALUATIONS]),
            bytes_read=self.epochs.traffic.bytes_read,
            bytes_computed=self.epochs.traffic.bytes_computed,
            validation=None if self.measure is None else self.measure(self._exported()),
        )

    def release(self) -> None:
        """Release α, which is not used for a while."""
        self.runner.row_state.release(0, self.problem.n_rows)
