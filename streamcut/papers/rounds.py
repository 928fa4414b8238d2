"""Iterative kernel solvers: responses of all rows in memory, and the loop with measurements, stopping and checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamcut.execution.runner import Interrupted
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import StopReason
from streamcut.models.kept import Kept
from streamcut.oracles.kernel_columns import KernelColumn, squared_norms
from streamcut.solvers.progress import Progress

_PATIENCE = 8  # measurements without a lower held-out error: two epochs
_EPOCH_PART = 4  # measurements per epoch, after the first quarter of an epoch; until then at 1, 2, 4, … rows


class Responses(Kept):
    """c_j = y_j Σ_i α_i y_i k(x_i, x_j) of all rows j, and α, float64 (m,), 0 at first; `c_sum` and `alpha_sum`: over all steps.

    chunk        all rows, centred by the kernel; signs int8 (m,): their classes ±1
    diagonal     k(x_j, x_j), float64 (m,)
    evaluations  kernel values computed: one per row for every step
    """

    kept = ("c", "alpha", "c_sum", "alpha_sum", "evaluations")

    def __init__(
        self,
        chunk: Chunk,
        kernel: Kernel,
        signs: np.ndarray,
        dimension: int,
        parts: int = 1,
        map_: Callable[..., Iterable[np.ndarray]] = map,
    ) -> None:
        """Columns are computed in so many `parts` by `map_`, a pool's or Python's."""
        self.n_rows, self.signs, self.evaluations = chunk.n_rows, signs, 0
        self._chunk, self._kernel, self._dimension, self._map = chunk, kernel, dimension, map_
        self._ends = [(part * self.n_rows // parts, (part + 1) * self.n_rows // parts) for part in range(parts)]
        self._squares = squared_norms(chunk)
        self.diagonal = kernel.diagonal(self._squares)
        self.c, self.alpha, self.c_sum, self.alpha_sum = (np.zeros(self.n_rows) for _ in range(4))

    def step(self, row: int, size: float, scale: float = 1.0) -> None:
        """α_row += size, then α and c times `scale`, then both to their sums."""
        self.alpha[row] += size
        self.alpha *= scale
        self.alpha_sum += self.alpha
        change = self.column(row)
        change *= size * self.signs[row]
        self.c[:] = scale * (self.c + self.signs * change)
        self.c_sum += self.c
        self.evaluations += self.n_rows

    def column(self, row: int) -> np.ndarray:
        """k(x_j, x_row) of all rows j, float64 (m,)."""
        at = KernelColumn(self._kernel, self._chunk.rows(row, row + 1), float(self._squares[row]), self._dimension)
        parts = self._map(lambda ends: at.over(self._chunk.rows(*ends), self._squares[slice(*ends)]), self._ends)
        return np.concatenate(list(parts))


class KernelMethod(Kept):
    """A solver on kernel responses, a row a step; `rows_seen` counts the rows processed: n_rows of them make an epoch."""

    kept: tuple[str, ...] = ("rows_seen", "drawn")

    def __init__(self, responses: Responses, *, random: np.random.Generator) -> None:
        self.responses, self.random = responses, random
        self.rows_seen = 0

    def iterate(self) -> None:
        """One iteration."""
        raise NotImplementedError

    def predictor(self) -> tuple[np.ndarray, float]:
        """The current (α, intercept): f(x) = Σ α_i y_i k(x_i, x) + intercept."""
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
    support: int
    seconds: float
    error: float | None
    figures: dict[str, float]

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        held_out = {} if self.error is None else {"held-out error": f"{100 * self.error:.3g} %"}
        figures = {name.replace("_", " "): f"{value:.4g}" for name, value in self.figures.items()}
        counts = {"rows seen": self.rows_seen, "kernel evaluations": self.evaluations, "support": self.support}
        return {**{name: f"{count:,}" for name, count in counts.items()}, **held_out, **figures}


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The final predictor: α (m,), its intercept, the stop reason, all measurements."""

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
            counts = solver.rows_seen, responses.evaluations, int(np.count_nonzero(alpha))
            progress.see(Round(len(progress.history), *counts, progress.seconds, error, solver.figures()))
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
