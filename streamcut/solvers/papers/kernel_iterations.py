"""The loop of iterative kernel solvers: measurements, stopping, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.kernel_columns import Responses
from streamcut.solvers.progress import Progress

_PATIENCE = 8  # measurements without a lower held-out error: two epochs
_EPOCH_PART = 4  # measurements per epoch, after the first quarter of an epoch; until then at 1, 2, 4, … rows


class Reads(Protocol):
    """Reads an array of a checkpoint by name: flat, of this dtype."""

    def __call__(self, name: str, kind: DTypeLike) -> np.ndarray: ...


def _read(found: StoredCheckpoint, name: str, kind: DTypeLike) -> np.ndarray:
    shape = found.shape(name)
    return found.read(name, (shape[0] if shape else 0,), kind)


class KernelSolver(Protocol):
    """A solver on kernel responses; `rows_seen` counts the rows processed: n_rows of them make an epoch."""

    responses: Responses
    rows_seen: int
    random: np.random.Generator

    def iterate(self) -> None:
        """One iteration."""

    def predictor(self) -> tuple[np.ndarray, float]:
        """The current (α in the order of responses.numbers, intercept): f(x) = Σ α_i y_i k(x_i, x) + intercept."""

    def figures(self) -> dict[str, float]:
        """Further figures to report."""

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint: the state between two iterations apart from the above."""

    def restore(self, numbers: dict[str, Any], read: Reads) -> None:
        """Resume from what `saved` returned; `read` returns an array by name."""


@dataclass(frozen=True, slots=True)
class Round:
    """The state of a solver after `rows_seen` rows; `error` on held-out rows (None without), `figures` are the solver's own."""

    iteration: int
    rows_seen: int
    evaluations: int
    passes: int
    support: int
    seconds: float
    bytes_read: int
    error: float | None
    figures: dict[str, float]

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        held_out = {} if self.error is None else {"held-out error": f"{100 * self.error:.3g} %"}
        own = {name.replace("_", " "): f"{value:.4g}" for name, value in self.figures.items()}
        counts = {"rows seen": self.rows_seen, "kernel evaluations": self.evaluations}
        counts |= {"passes": self.passes, "support": self.support}
        return {**{name: f"{count:,}" for name, count in counts.items()}, **held_out, **own}


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The final predictor: α in the order of responses.numbers, its intercept, the stop reason, all measurements."""

    alpha: np.ndarray
    intercept: float
    reason: StopReason
    history: list[Round]


@dataclass(slots=True)
class _State:
    """The state of the loop between two iterations; with the solver's it is the checkpoint.

    The next measurement is at `due` rows seen; the last `since` measurements were not below `error`, that of the predictor
    (`alpha`, `intercept`) to return.
    """

    solver: KernelSolver
    iterations: int = 0
    due: int = 1
    since: int = 0
    error: float = math.inf
    alpha: np.ndarray = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0

    def next_iteration(self) -> None:
        self.iterations += 1
        self.solver.iterate()

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        method, arrays = self.solver.saved()
        numbers = {name: getattr(self, name) for name in ("iterations", "due", "since", "error", "intercept")}
        own = {"rows_seen": self.solver.rows_seen, "random": self.solver.random.bit_generator.state, "method": method}
        return {**numbers, **own}, {"best": self.alpha, **{f"method.{name}": array for name, array in arrays.items()}}

    def restore(self, found: StoredCheckpoint) -> None:
        """Restore the saved state, bit for bit."""
        numbers = found.record["state"]["solver"]
        for name in ("iterations", "due", "since", "error", "intercept"):
            setattr(self, name, numbers[name])
        self.alpha = found.read("best", found.shape("best"))
        self.solver.rows_seen, self.solver.random.bit_generator.state = numbers["rows_seen"], numbers["random"]
        self.solver.restore(numbers["method"], lambda name, kind: _read(found, f"method.{name}", kind))


def run(
    solver: KernelSolver,
    progress: Progress,
    epochs: float | None,
    held_out: Callable[[np.ndarray, float], float] | None = None,
    *,
    patience: float = _PATIENCE,
) -> Fit:
    """Iterate until so many epochs are done (None: not limited), the held-out error has not fallen for two epochs, or
    `progress` stops the run.

    held_out  the error of a predictor on held-out rows, measured four times an epoch; the predictor with the lowest is returned.
    patience  measurements without a better one (two epochs); infinity: the held-out error never ends the run
    Raises Interrupted before the first iteration.
    """
    state, responses = _State(solver), solver.responses
    found = progress.resume(responses, Round)
    if found is not None:
        with found.restoring():
            state.restore(found)
    elif progress.stop():
        raise Interrupted
    else:
        state.next_iteration()
    history: list[Any] = progress.history
    while True:
        reason = _reason(solver, progress, epochs)
        if reason is not None or (progress.checkpoints is not None and progress.checkpoints.due()):
            progress.save(state, responses)  # before a measurement that is the last one only because of a limit
        if reason is not None or solver.rows_seen >= state.due:
            alpha, intercept = solver.predictor()
            error = None if held_out is None else held_out(alpha, intercept)
            counts = (responses.evaluations, responses.passes, int(np.count_nonzero(alpha)))
            read = responses.traffic.bytes_read
            history.append(Round(len(history), solver.rows_seen, *counts, progress.seconds, read, error, solver.figures()))
            if progress.observe is not None:
                progress.observe(history[-1])
            if error is None or error < state.error:
                state.alpha, state.intercept, state.since = alpha, intercept, 0
                state.error = math.inf if error is None else error
            else:
                state.since += 1
            if reason is None and state.since >= patience and solver.rows_seen > responses.n_rows:
                reason = StopReason.SETTLED
            state.due = solver.rows_seen + max(1, min(solver.rows_seen, responses.n_rows // _EPOCH_PART))
        if reason is not None:
            return Fit(state.alpha, state.intercept, reason, history)
        state.next_iteration()


def _reason(solver: KernelSolver, progress: Progress, epochs: float | None) -> StopReason | None:
    most = progress.rule.max_time
    if epochs is not None and solver.rows_seen >= epochs * solver.responses.n_rows:
        return StopReason.EPOCHS
    if most is not None and progress.seconds >= most:
        return StopReason.TIME
    return StopReason.INTERRUPTED if progress.stop() else None


def as_records(history: list[Round]) -> list[dict[str, Any]]:
    """The history in JSON types."""
    return [{**{name: getattr(line, name) for name in Round.__slots__ if name != "figures"}, **line.figures} for line in history]
