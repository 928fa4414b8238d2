"""Dual ascent over cached rows by interior points, for few features: coordinate steps take hundreds of sweeps for a large C.

Rows that are not cached stay as they are. Lanes only add up what their rows say: the answer is that of one lane but for rounding.

    x = w; dual variables, s and l of the central path for a large μ, by the margins of x
    repeat
        matrix and vector of Newton's step, summed over all cached rows; the step for μ = 0, and how far all stay inside on it
        the further, the smaller μ; the step for that, which makes up for the products of the first (Mehrotra 1992)
        how far all stay inside; that part of the step, or nearly
    until the gap of the problem in cached rows, Σ c (s f + l (1 − f)) + ½‖rest + Σ c f a − x‖², is small enough

streamcut.compiled.interior has the equations. Whatever comes out is a step of the dual variables like that of a sweep, of which
the best part is taken: what rounding does to it may make it short, never wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.compiled import interior, vectors
from streamcut.execution.cache_passes import Step
from streamcut.execution.passes import CachingPass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Statistics
from streamcut.losses.loss import Loss
from streamcut.oracles.dual.loss_cache import LossCache

_FEATURES = 512  # at most, with the bias; its matrix has their square
_ENTRIES = 64  # a row, in the mean: products of all pairs of them cost no more than some tens of sweeps
_FIRST = 1.0  # μ: beside margins of that size a row's loss bends slowly
_INSIDE = 0.99  # of the way to where the first row reaches a bound
_MOST = 60  # steps
USUAL = 15  # steps in a pass, for what training would cost: 2 to 15 on a9a
_LEAST = 1e-9  # of Σ c: no smaller a gap is asked for
_ROUGH = 1e-4  # of Σ c: nor in the first pass, after which nothing else is that exact


def suits(loss: Loss, statistics: Statistics, dimension: int) -> bool:
    """Whether the loss is the hinge, and w and rows are short enough."""
    return loss.boxed and dimension <= _FEATURES and statistics.nnz <= _ENTRIES * statistics.n_rows


@dataclass(slots=True)
class Equations:
    """What cached rows add to matrix (D, D) and vector (D) of a step; at first to `rest` and `moved` (D), and Σ c."""

    matrix: np.ndarray
    vector: np.ndarray
    rest: np.ndarray
    moved: np.ndarray
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class _PathPass(CachingPass):
    """Base: something of the cached rows of every lane; the data is not read."""

    caches: Mapping[int, LossCache]
    C: float
    bias: float
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class AssemblePass(_PathPass):
    """The `part` of the last step, for `last`, and the equations of the next one, for `mu`; the first one begins at `w`."""

    w: np.ndarray
    part: float
    mu: float
    first: bool

    def begin(self) -> Equations:
        D = len(self.w)
        return Equations(np.zeros((D, D)), np.zeros(D), np.zeros(D), np.zeros(D))

    def finish(self, sums: Equations, rows: Rows, first_row: int) -> None:
        cache = self.caches[first_row]
        if self.first:
            sums.weight = cache.begin_path(self.C, self.bias, self.w, self.mu, sums.rest, sums.moved)
        cache.assemble(self.C, self.bias, self.part, self.mu, sums.matrix, sums.vector)

    def merge(self, total: Equations, part: Equations) -> Equations:
        for name in ("matrix", "vector", "rest", "moved"):
            vectors.add(getattr(total, name).reshape(-1), getattr(part, name).reshape(-1))
        total.weight += part.weight
        return total


@dataclass(slots=True)
class Reach:
    """The longest part of a step on which all stay inside, and what Σ c (s f + l (1 − f)) is along it: a parabola's `sums` (3).

    vectors  (2, D) of streamcut.compiled.interior.predict
    """

    longest: float = np.inf
    sums: np.ndarray = field(default_factory=lambda: np.zeros(3))
    vectors: np.ndarray | None = None

    @property
    def part(self) -> float:
        """That of the step."""
        return min(1.0, _INSIDE * self.longest)

    def at(self, part: float) -> float:
        """Σ c (s f + l (1 − f)) after this part of it."""
        return float(self.sums @ (1.0, part, part * part))

    def plus(self, other: Reach) -> Reach:
        """Of both, but for `vectors`, in place."""
        self.longest = min(self.longest, other.longest)
        self.sums += other.sums
        return self


@dataclass(frozen=True, slots=True)
class PredictPass(_PathPass):
    """How far along `delta` (D), the step for μ = 0, rows can go, and what makes the step for any μ of it."""

    delta: np.ndarray

    def begin(self) -> Reach:
        return Reach(vectors=np.zeros((2, len(self.delta))))

    def finish(self, sums: Reach, rows: Rows, first_row: int) -> None:
        assert sums.vectors is not None
        sums.longest = self.caches[first_row].predict(self.C, self.bias, self.delta, sums.sums, sums.vectors)

    def merge(self, total: Reach, part: Reach) -> Reach:
        vectors.add(total.vectors.reshape(-1), part.vectors.reshape(-1))  # type: ignore[union-attr]
        return total.plus(part)


@dataclass(frozen=True, slots=True)
class ReachPass(_PathPass):
    """How far along `delta` (D) rows can go, for `mu`."""

    delta: np.ndarray
    mu: float

    def begin(self) -> Reach:
        return Reach()

    def finish(self, sums: Reach, rows: Rows, first_row: int) -> None:
        sums.longest = self.caches[first_row].reach(self.C, self.bias, self.delta, self.mu, sums.sums)

    def merge(self, total: Reach, part: Reach) -> Reach:
        return total.plus(part)


@dataclass(frozen=True, slots=True)
class LeavePass(_PathPass):
    """The `part` of the last step, for `mu`, and what has come of all: a Step of D numbers."""

    dimension: int
    part: float
    mu: float

    def begin(self) -> Step:
        return Step(np.zeros(self.dimension))

    def finish(self, step: Step, rows: Rows, first_row: int) -> None:
        step.gain = self.caches[first_row].leave_path(self.C, self.bias, self.part, self.mu, step.delta)

    def merge(self, total: Step, part: Step) -> Step:
        vectors.add(total.delta, part.delta)
        total.gain += part.gain
        return total


def solve_cached(
    runner: PassRunner,
    caches: Mapping[int, LossCache],
    w: np.ndarray,
    near: np.ndarray,
    C: float,
    bias: float,
    enough: float,
    first: bool,
) -> Step:
    """A step of the dual variables of cached rows, which w (D) is made of, that leaves them a gap of `enough`, nearly.

    `near` (D) is where to begin: the w that the master problem found, for that of lanes together may be far off.
    """
    mu, part, x = _FIRST, 0.0, near.copy()
    found = runner.run(AssemblePass(caches, C, bias, x, part, mu, True))[0]
    rest, weight = w + found.rest, found.weight
    away = float(np.sqrt(vectors.line(x, w + found.moved)[0]))
    enough = max(enough, (_ROUGH if first else _LEAST) * weight)
    for _ in range(_MOST if weight > 0.0 else 0):
        if not interior.factor(found.matrix):
            break
        wanted = rest + found.vector - x
        delta = wanted.copy()
        interior.solve(found.matrix, delta)
        ahead = runner.run(PredictPass(caches, C, bias, delta))[0]
        now = ahead.at(0.0)
        mu = max(ahead.at(ahead.part) / now, _LEAST) ** 3 * now / (2.0 * weight)
        delta = wanted + mu * ahead.vectors[0] + ahead.vectors[1]
        interior.solve(found.matrix, delta)
        reach = runner.run(ReachPass(caches, C, bias, delta, mu))[0]
        part = reach.part
        x += part * delta
        away *= 1.0 - part
        if reach.at(part) + 0.5 * away * away <= enough:
            break
        found = runner.run(AssemblePass(caches, C, bias, x, part, mu, False))[0]
        part = 0.0
    return runner.run(LeavePass(caches, C, bias, len(w), part, mu))[0]
