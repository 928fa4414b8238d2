"""The loop of kernel solvers that go by rounds: when to look at how far they are, when to stop, what is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamcut.execution.kernel_columns import Responses
from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.solvers.progress import Progress

_PATIENCE = 8  # looks at the held-out error without a better one: two epochs
_EPOCH_PART = 4  # looks at the state in an epoch, once the first quarter of one is over; until then at 1, 2, 4, … rows


class RoundSolver(Protocol):
    """A solver on kernel responses; `looks` counts the rows that it looked at, of which as many as there are make an epoch."""

    responses: Responses
    looks: int

    def round(self) -> None:
        """One step."""

    def predictor(self) -> tuple[np.ndarray, float]:
        """(α in the order of responses.numbers, intercept) as they stand: f(x) = Σ α_i y_i k(x_i, x) + intercept."""

    def figures(self) -> dict[str, float]:
        """What else is worth telling."""


@dataclass(frozen=True, slots=True)
class Round:
    """The state of a solver after `looks` rows; `error` on held-out rows (None without), `figures` are its own numbers."""

    iteration: int
    looks: int
    evaluations: int
    passes: int
    support: int
    seconds: float
    bytes_read: int
    error: float | None
    figures: dict[str, float]

    def columns(self) -> dict[str, str]:
        """Short texts for people, by what they tell."""
        held_out = {} if self.error is None else {"held-out error": f"{100 * self.error:.3g} %"}
        own = {name.replace("_", " "): f"{value:.4g}" for name, value in self.figures.items()}
        counts = {"rows seen": self.looks, "kernel evaluations": self.evaluations, "passes": self.passes, "support": self.support}
        return {**{name: f"{count:,}" for name, count in counts.items()}, **held_out, **own}


@dataclass(frozen=True, slots=True)
class Limits:
    """Stop after so many epochs or kernel evaluations, whichever comes first; None: no limit."""

    epochs: float | None = None
    evaluations: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The predictor that is left: α in the order of responses.numbers, its intercept, why it ended, all rounds looked at."""

    alpha: np.ndarray
    intercept: float
    reason: StopReason
    history: list[Round]


def run(
    solver: RoundSolver,
    progress: Progress,
    limits: Limits,
    held_out: Callable[[np.ndarray, float], float] | None = None,
    *,
    patience: float = _PATIENCE,
) -> Fit:
    """Rounds until a limit is reached, the held-out error has not fallen for two epochs, or `progress` says so.

    held_out  the error of a predictor on held-out rows: looked at four times an epoch; the predictor with the least is returned.
    patience  so many looks without a better one are two epochs; infinity: the held-out error ends nothing
    Raises Interrupted before the first round.
    """
    started = time.monotonic()
    history: list[Round] = []
    best, since = (math.inf, np.zeros(0), 0.0), 0
    responses, due = solver.responses, 1
    if progress.stop():
        raise Interrupted
    while True:
        solver.round()
        seconds = time.monotonic() - started
        reason = _reason(solver, progress, limits, seconds)
        if reason is not None or solver.looks >= due:
            alpha, intercept = solver.predictor()
            error = None if held_out is None else held_out(alpha, intercept)
            traffic = responses.traffic
            counts = (responses.evaluations, responses.passes, int(np.count_nonzero(alpha)))
            history.append(Round(len(history), solver.looks, *counts, seconds, traffic.bytes_read, error, solver.figures()))
            if progress.observe is not None:
                progress.observe(history[-1])
            if error is None or error < best[0]:
                best, since = (math.inf if error is None else error, alpha, intercept), 0
            else:
                since += 1
            if reason is None and since >= patience and solver.looks > responses.n_rows:
                reason = StopReason.SETTLED
            due = solver.looks + max(1, min(solver.looks, responses.n_rows // _EPOCH_PART))
        if reason is not None:
            return Fit(best[1], best[2], reason, history)


def _reason(solver: RoundSolver, progress: Progress, limits: Limits, seconds: float) -> StopReason | None:
    most = progress.rule.max_time
    if limits.epochs is not None and solver.looks >= limits.epochs * solver.responses.n_rows:
        return StopReason.EPOCHS
    if limits.evaluations is not None and solver.responses.evaluations >= limits.evaluations:
        return StopReason.EVALUATIONS
    if most is not None and seconds >= most:
        return StopReason.TIME
    return StopReason.INTERRUPTED if progress.stop() else None


def as_records(history: list[Round]) -> list[dict[str, Any]]:
    """The history in JSON types."""
    return [{**{name: getattr(line, name) for name in Round.__slots__ if name != "figures"}, **line.figures} for line in history]
