"""The loop of iterative kernel solvers: measurements, stopping, checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.kept import Kept
from streamcut.papers.responses import Responses
from streamcut.solvers.progress import Progress

_PATIENCE = 8  # measurements without a lower held-out error: two epochs
_EPOCH_PART = 4  # measurements per epoch, after the first quarter of an epoch; until then at 1, 2, 4, … rows


class KernelMethod(Kept):
    """A solver on kernel responses, `batch` rows a step; `rows_seen` counts the rows processed: n_rows of them make an epoch.

    averaged  whether it needs the sums of responses and α over its steps
    """

    averaged = False
    kept: tuple[str, ...] = ("rows_seen", "drawn")

    def __init__(self, responses: Responses, *, batch: int = 1, random: np.random.Generator) -> None:
        self.responses, self.random = responses, random
        self.rows_seen = 0
        self._batch = batch

    def iterate(self) -> None:
        """One iteration."""
        raise NotImplementedError

    def predictor(self) -> tuple[np.ndarray, float]:
        """The current (α in the order of responses.numbers, intercept): f(x) = Σ α_i y_i k(x_i, x) + intercept."""
        return self.responses.alpha.copy(), 0.0

    def figures(self) -> dict[str, float]:
        """Further figures to report."""
        return {}

    @property
    def drawn(self) -> str:
        """The state of the random generator."""
        return json.dumps(self.random.bit_generator.state)

    @drawn.setter
    def drawn(self, state: str) -> None:
        self.random.bit_generator.state = json.loads(state)


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


@dataclass
class _State(Kept):
    """The state of the loop between two iterations; with the solver's it is the checkpoint.

    The next measurement is at `due` rows seen; the last `since` measurements were not below `error`, that of the predictor
    (`best`, `intercept`) to return.
    """

    solver: KernelMethod
    due: int = 1
    since: int = 0
    error: float = math.inf
    best: np.ndarray = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    kept = ("due", "since", "error", "best", "intercept", "solver")
    resized = ("best",)


def run(
    solver: KernelMethod,
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
    if not progress.resume_with(responses, state, Round):
        if progress.stop():
            raise Interrupted
        solver.iterate()
    while True:
        reason = _reason(solver, progress, epochs)
        if reason is None:
            progress.keep(state, responses)
        else:
            progress.save(state, responses)  # before a measurement that is the last one only because of a limit
        if reason is not None or solver.rows_seen >= state.due:
            alpha, intercept = solver.predictor()
            error = None if held_out is None else held_out(alpha, intercept)
            counts = (responses.evaluations, responses.passes, int(np.count_nonzero(alpha)))
            read, number = responses.traffic.bytes_read, len(progress.history)
            progress.see(Round(number, solver.rows_seen, *counts, progress.seconds, read, error, solver.figures()))
            if error is None or error < state.error:
                state.best, state.intercept, state.since = alpha, intercept, 0
                state.error = math.inf if error is None else error
            else:
                state.since += 1
            if reason is None and state.since >= patience and solver.rows_seen > responses.n_rows:
                reason = StopReason.SETTLED
            state.due = solver.rows_seen + max(1, min(solver.rows_seen, responses.n_rows // _EPOCH_PART))
        if reason is not None:
            return Fit(state.best, state.intercept, reason, progress.history)
        solver.iterate()


def _reason(solver: KernelMethod, progress: Progress, epochs: float | None) -> StopReason | None:
    if epochs is not None and solver.rows_seen >= epochs * solver.responses.n_rows:
        return StopReason.EPOCHS
    return progress.ended()


def as_records(history: list[Round]) -> list[dict[str, Any]]:
    """The history in JSON types."""
    return [{**{name: getattr(line, name) for name in Round.__slots__ if name != "figures"}, **line.figures} for line in history]
