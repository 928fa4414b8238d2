"""SMO: sequential minimal optimisation for data in memory (Platt 1998; Fan, Chen & Lin 2005; Chang & Lin 2011, sections 4 and 5).

Problem   min ½ Σ α_i α_j y_i y_j k(x_i, x_j) − Σ α_i over 0 ≤ α_i ≤ C_i, with a bias also Σ y_i α_i = 0: the dual of the SVM with
          hinge loss and, with a bias, an intercept that is not regularised.
Given     all rows, their C_i, a kernel, memory for kernel columns, a tolerance.
Returns   α, the best intercept for it, the primal objective there and the dual one, which is a lower bound.
Stops     when the gap between both is small enough. On the way: when no pair of rows (without bias: no row) violates optimality
          by a tolerance, which falls until the gap is small. And when two looks in a row, each after as many steps as before it,
          find less than a tenth of the gap closed: with some kernels and C it never would be.

    α = 0
    repeat
        the pair that violates optimality (the first row most, the second by the predicted decrease) moves to its optimum
        periodically, rows that will stay at their bound are left out (shrinking)
        near the optimum, and at the end, all rows are reactivated

As in LIBSVM, except for the kernel columns: they are computed by scattering a row, not by merging two, and those of linear and
polynomial kernels, with a bias, about φ(the mean row). There is no second gradient of the rows at C; gradients of left-out rows
are recomputed from all support rows, in blocks, with exact kernel values.

A free intercept of a kernel machine: its constraint Σ y_i α_i = 0, and its best value for given scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.compiled import smo
from streamcut.compiled.smo import DONE, MISSING
from streamcut.execution.runner import Interrupted
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import above, gamma
from streamcut.kernels.kernel import RBF, Kernel
from streamcut.models.certificate import DualPoint, StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept
from streamcut.oracles.kernel_columns import KernelCache, KernelColumn, SharedColumns, mean_row, scores_in_memory, squared_norms
from streamcut.solvers.progress import Progress

_SHRINK_EVERY = 1000  # steps, or as many as there are rows
_NEAR = 10.0  # times the tolerance: where all rows are reactivated once, and shrinking restarts
_MISSES = 256  # missing columns after which `stop` is polled, or fewer that read
_ENTRIES = 1 << 27  # so many entries of rows, a fraction of a second's work
_FIRST_LOOK, _PER_ROW = 100_000, 50  # steps, and steps per row, until their gain is first looked at
_GAIN, _IDLE = 0.1, 2  # part of the gap that doubling the steps should gain; how often in a row it may gain less
_SPARE = 16  # roundings of a few sums and products of scalars
_FIRST, _TIGHTER, _LAST = 0.1, 0.25, 1e-9  # tolerances: the first, the factor from one to the next, and the last before giving up


class SMO(Kept):
    """`chunk` holds all rows, centred by the kernel, `signs` (m) their classes ±1, `upper` (m) their C_i; `cache_bytes` for
    kernel columns, in addition to the `shared` ones.

    evaluations  kernel values computed so far
    diagonal     k(x_i, x_i), float64 (m,), of the kernel as columns have it
    beta         y_i α_i, float64 (m,)
    gradient     y_i − f(x_i) without the intercept; exact to the precision of float32 kernel values
    """

    kept = ("steps", "evaluations", "_counted", "_looked_again", "beta", "gradient", "_active")
    resized = ("_active",)

    def __init__(
        self,
        chunk: Chunk,
        kernel: Kernel,
        signs: np.ndarray,
        upper: np.ndarray,
        *,
        dimension: int,
        bias: bool,
        cache_bytes: int,
        workers: int = 1,
        shared: SharedColumns | None = None,
    ) -> None:
        self._shared = shared
        self.evaluations = 0
        self.steps = 0
        self._chunk, self._kernel, self._dimension, self._workers = chunk, kernel, dimension, workers
        self._bias = bias
        self._squares = squared_norms(chunk)
        self.diagonal = kernel.diagonal(self._squares)
        self._poll = max(1, min(_MISSES, _ENTRIES // max(chunk.nnz, 1)))
        self._shift: np.ndarray | None = None
        if bias and kernel.code != RBF:
            self._shift = self._of_centre()
            self.diagonal = self.diagonal - 2.0 * self._shift
        self._sign, self._upper = signs, upper
        self._low, self._high = np.where(signs > 0, 0.0, -upper), np.where(signs > 0, upper, 0.0)
        self.beta = np.zeros(chunk.n_rows)
        self.gradient = signs.astype(np.float64)
        self._cache = KernelCache(chunk.n_rows, cache_bytes)
        self._active = np.arange(chunk.n_rows)
        self._counted = 0  # steps since rows were last left out
        self._looked_again = False

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Steps until no violation over all rows reaches `tolerance`. False: `stop` ended it before."""
        advance, every = smo.pairs if self._bias else smo.singles, min(_SHRINK_EVERY, self._chunk.n_rows)
        misses = 0
        while True:
            cache = self._cache
            ended, row, steps = advance(
                self._active, self._low, self._high, self.diagonal, cache.numbers, cache.slot_of, cache.stamps, self._now,
                self.beta, self.gradient, tolerance, every - self._counted,
            )  # fmt: skip
            self.steps += steps
            self._counted += steps
            if ended == MISSING:
                self._fill(row)
                misses += 1
                if misses % self._poll == 0 and stop():
                    break
            elif ended == DONE and len(self._active) == self._chunk.n_rows:
                self._looked_again = False
                return True
            elif ended == DONE:
                self._look_at_all()
            else:
                self._counted = 0
                self._shrink(tolerance)
                if stop():
                    break
        self._look_at_all()
        return False

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        super().restore(record, stored)
        self._cache.clear(len(self._active))  # cached columns are computed again: they are the same

    @property
    def alpha(self) -> np.ndarray:
        """α, float64 (m,)."""
        return np.abs(self.beta)

    @property
    def _now(self) -> int:
        return self.steps + 1

    def _fill(self, row: int) -> None:
        """Put the column of `row` into the cache."""
        some = None if len(self._active) == self._chunk.n_rows else self._active
        column = None if self._shared is None else self._shared.of(row, lambda: self._column(row, None))
        if column is None:
            column = self._column(row, some)
        elif some is not None:
            column = column[some]
        self._cache.put(row, column, self._now)

    def _column(self, row: int, rows: np.ndarray | None) -> np.ndarray:
        at = KernelColumn(self._kernel, self._chunk.rows(row, row + 1), self._squares[row], self._dimension)
        self.evaluations += self._chunk.n_rows if rows is None else len(rows)
        column = at.over(self._chunk, self._squares, rows)
        if self._shift is not None:
            column -= self._shift[row] + (self._shift if rows is None else self._shift[rows])
        return column

    def _of_centre(self) -> np.ndarray:
        """s_i = k(x_i, c) − ½k(c, c), float64 (m,), c the mean row: k(x, x′) − s(x) − s(x′) is the product of φ(x) − φ(c) and
        φ(x′) − φ(c), and with Σ y_i α_i = 0 as good as k(x, x′). Far from the origin float32 holds only the former.
        """
        centre = mean_row(self._chunk, self._dimension)
        square = squared_norms(centre)
        at = KernelColumn(self._kernel, centre, float(square[0]), self._dimension)
        return at.over(self._chunk, self._squares) - 0.5 * self._kernel.diagonal(square)

    def _shrink(self, tolerance: float) -> None:
        """Leave out rows that are unlikely to move (Joachims 1999; LIBSVM, section 5.2): those at a bound whose gradient points
        outwards by more than the largest violation among the others."""
        value, grows, falls = self._moves()
        highest, lowest = value[grows].max(initial=-np.inf), value[falls].min(initial=np.inf)
        if not self._bias:
            highest = max(highest, -lowest, 0.0)
            lowest = -highest
        if not self._looked_again and (highest - lowest if self._bias else highest) <= _NEAR * tolerance:
            self._looked_again = True
            self._look_at_all()
            value, grows, falls = self._moves()
        kept = np.flatnonzero((falls | (value >= lowest)) & (grows | (value <= highest)))
        if len(kept) < len(self._active):
            self._cache.narrow(kept)
            self._active = self._active[kept]

    def _moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(gradient, whether β may grow, whether it may fall) of the active rows."""
        gradient, beta, low, high = (of[self._active] for of in (self.gradient, self.beta, self._low, self._high))
        return gradient, beta < high, beta > low

    def _look_at_all(self) -> None:
        """Reactivate all rows; gradients of inactive ones are recomputed from all support rows."""
        m = self._chunk.n_rows
        if len(self._active) == m:
            return
        left_out = np.setdiff1d(np.arange(m), self._active, assume_unique=True)
        self.gradient[left_out] = self._sign[left_out] - (self._scores(left_out) - self._level())
        self._active = np.arange(m)
        self._cache.clear(m)

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        """Σ α_i y_i k(x_i, ·) of `rows`, to float64 precision, from all support rows."""
        (support,) = np.nonzero(self.beta)
        if len(support) == 0:
            return np.zeros(len(rows))
        self.evaluations += len(support) * len(rows)
        return scores_in_memory(self._kernel, self._chunk, rows, support, self.beta[support], self._dimension, self._workers)

    def _level(self) -> float:
        """By how much scores exceed those of the shifted kernel, the same for all rows."""
        return 0.0 if self._shift is None else math.fsum(self.beta * self._shift)

    def estimate(self) -> Value:
        """Primal and dual from the gradient, built from float32 kernel values: good to about seven digits."""
        return self._value(1.0 - self._sign * self.gradient)

    def certify(self) -> Value:
        """Primal and dual at α, from exact responses. With a bias α is first moved, by rounding errors, to Σ y_i α_i = 0."""
        if self._bias:
            alpha = self.alpha
            balance(alpha, self._sign, self._upper)
            self.beta = self._sign * alpha
        scores = self._scores(np.arange(self._chunk.n_rows))
        responses = self._sign * scores
        self.gradient = self._sign - (scores - self._level())
        return self._proved(responses, self._value(responses))

    def _value(self, responses: np.ndarray) -> Value:
        intercept = best_intercept(self._sign, self._upper, responses) if self._bias else 0.0
        square = math.fsum(self.alpha * responses)
        loss = math.fsum(self._upper * np.maximum(0.0, 1.0 - responses - self._sign * intercept))
        return Value(0.5 * square + loss, math.fsum(self.alpha) - 0.5 * square, intercept)

    def _proved(self, responses: np.ndarray, value: Value) -> Value:
        """The same, rigorous: rounding bounds are added to the primal and subtracted from the dual."""
        (support,) = np.nonzero(self.beta)
        entries = int(np.diff(self._chunk.indptr).max())
        doubts = self._kernel.rounding(self._squares, self._squares[support], self.beta[support], entries)
        size = np.abs(responses)
        square = math.fsum(self.alpha * responses)
        square_doubt = math.fsum(self.alpha * (doubts + gamma(2) * size))
        slack = 1.0 - responses - self._sign * value.intercept
        slack += doubts + gamma(_SPARE) * (1.0 + size + abs(value.intercept))
        most = 0.5 * (square + square_doubt) + math.fsum(self._upper * np.maximum(0.0, slack))
        primal = above(most, gamma(_SPARE) * most)
        dual = DualPoint(self.beta[support], np.zeros(0)).value(square, square_doubt)
        return Value(primal, dual, value.intercept, primal - value.primal, value.dual - dual)


@dataclass(frozen=True, slots=True)
class Value:
    """½‖w‖² + Σ C_i max(0, 1 − y_i f(x_i)) with the best intercept, and the dual objective, a lower bound on it.

    For rounding the first was `raised` and the second `lowered`.
    """

    primal: float
    dual: float
    intercept: float
    raised: float = 0.0
    lowered: float = 0.0

    @property
    def gap(self) -> float:
        return self.primal - self.dual


@dataclass(frozen=True, slots=True)
class Stage:
    """The state of SMO once no violation exceeds `tolerance`; steps and kernel evaluations are totals."""

    iteration: int
    tolerance: float
    steps: int
    evaluations: int
    primal: float
    lower_bound: float
    gap: float
    support: int
    seconds: float
    allowed_gap: float

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        counts = {"steps": self.steps, "kernel evaluations": self.evaluations, "support": self.support}
        values = {"primal": f"{self.primal:.4g}", "bound": f"{self.lower_bound:.4g}"}
        gap = f"{self.gap:.2g}" + (f" of {self.allowed_gap:.2g}" if self.allowed_gap > 0.0 else "")
        return {**{name: f"{count:,}" for name, count in counts.items()}, **values, "gap": gap}


@dataclass
class _Loop(Kept):
    """The state of `run` in addition to the SMO: the tolerance, and what looks at exact values saw.

    until      steps at which the next look is due
    gap, dual  the least gap and the dual that looks have seen; a gap of 0: there was none
    idle       consecutive looks that saw no gain
    """

    tolerance: float
    until: int
    gap: float = 0.0
    dual: float = 0.0
    idle: int = 0
    kept = ("tolerance", "until", "gap", "dual", "idle")

    def look(self, value: Value) -> None:
        """See what twice the steps gained: as much of the gap, or by raising the dual bound."""
        gained = self.gap == 0.0 or value.gap <= (1.0 - _GAIN) * self.gap or value.dual - self.dual >= _GAIN * value.gap
        self.idle = 0 if gained else self.idle + 1
        self.gap, self.dual = min(self.gap or value.gap, value.gap), max(self.dual, value.dual)
        self.until *= 2


def run(smo_state: SMO, progress: Progress, c_bar: float) -> tuple[Value, StopReason, list[Stage]]:
    """Lower the tolerance until the gap meets the rule of `progress`, or doubling the steps gains next to nothing; the returned
    value is exact.

    Raises Interrupted before the first step.
    """
    rule, loop = progress.rule, _Loop(_FIRST, _FIRST_LOOK + _PER_ROW * len(smo_state.beta))
    if not progress.resume_with(smo_state, loop, Stage) and progress.stop():
        raise Interrupted

    def over() -> bool:
        ended = progress.ended() is not None
        if ended:
            progress.save(loop, smo_state)
        else:
            progress.keep(loop, smo_state)
        return ended

    while True:
        finished = smo_state.solve(loop.tolerance, lambda: over() or smo_state.steps >= loop.until)
        value = smo_state.estimate()
        look = not finished and smo_state.steps >= loop.until
        last = not (finished or look) or loop.tolerance < _LAST or over()
        if last or look or rule.reason(value.primal, value.dual, c_bar, 0, 0.0) is not None:
            value = smo_state.certify()
        seconds = progress.seconds
        support, allowed = int(np.count_nonzero(smo_state.beta)), rule.allowed_gap(value.primal, c_bar)
        counts = (loop.tolerance, smo_state.steps, smo_state.evaluations)
        number = len(progress.history)
        progress.see(Stage(number, *counts, value.primal, value.dual, value.gap, support, seconds, allowed))
        if look:
            loop.look(value)
        reason = rule.reason(value.primal, value.dual, c_bar, 0, seconds)
        if reason is None and progress.stop():
            reason = StopReason.INTERRUPTED
        elif reason is None and (last or (not look and value.raised + value.lowered > allowed)):
            reason = StopReason.STALLED
        elif reason is None and loop.idle >= _IDLE:
            reason = StopReason.IDLE
        if reason is not None:
            return value, reason, progress.history
        loop.tolerance *= _TIGHTER if finished else 1.0


def balance(alpha: np.ndarray, signs: np.ndarray, upper: np.ndarray) -> None:
    """Move α, in place, by the deviation of Σ y_i α_i from 0, so that the sum is exactly 0: only then is the dual value a bound.

    The error goes to the row with the smallest α that can take it, where rounding is finest. If none can, because all are so
    much larger, the smallest α becomes 0: the others are multiples of a larger unit, and so is the error then.
    """
    while (off := math.fsum(alpha * signs)) != 0.0:
        after = alpha - signs * off
        room = (after >= 0.0) & (after <= upper) & (after != alpha)
        if room.any():
            row = np.flatnonzero(room)[np.argmin(alpha[room])]
            alpha[row] = after[row]
        else:
            alpha[alpha == alpha[alpha > 0.0].min()] = 0.0


def best_intercept(signs: np.ndarray, upper: np.ndarray, responses: np.ndarray) -> float:
    """The b with the least Σ C_i max(0, 1 − c_i − y_i b): convex, piecewise linear, its slope jumps by C_i at y_i (1 − c_i).

    If an interval of them has the least, its middle, as in LIBSVM. That is where the slope is 0, up to rounding of the sums.
    """
    candidates = signs * (1.0 - responses)
    order = np.argsort(candidates, kind="stable")
    slopes = np.cumsum(upper[order]) - upper[signs > 0].sum()
    nothing = gamma(len(slopes)) * upper.sum()
    first, end = np.searchsorted(slopes, (-nothing, nothing), side="left")
    ends = np.minimum((first, end), len(order) - 1)
    return float(candidates[order[ends]].mean())
