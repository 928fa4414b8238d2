"""Columns move along lines: to the best point between w_b and the point scored last, and at the end to a better one as good."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.compiled import columns_vectors as vectors
from streamcut.execution.runner import Interrupted
from streamcut.foundation.rounding import absolute_above, objective
from streamcut.oracles.columns import ColumnsOracle, Start
from streamcut.solvers.columns_state import State
from streamcut.solvers.progress import StoppingRule

_RISK = 0.01  # of the gap: if rounding in a step may add more than that to F, the point before it is kept
_SOLVED = 1e-6  # of F: the largest gap at which the weights are those of the optimum, and only the intercept is open
_FLAT = 1e-12  # of C̄: slopes within rounding of 0
_CLOSE = 1e-6  # of the way to an end of the optimal intercepts: left open


def search(s: State, oracle: ColumnsOracle, W: np.ndarray, bd: np.ndarray, dd: np.ndarray) -> None:
    """Move each column to the best point on the line from w_b to the scored point. The data is not read."""
    A, C, l1, costly = len(s.lines), oracle.costs, oracle.l1s, oracle.costly
    room, last = np.empty((1, A * s.width)), W[-1] - s.best[-1]

    def slopes(k: np.ndarray) -> np.ndarray:
        if l1 is not None:
            vectors.penalty_slopes(s.best[costly], W[costly], s.each(k), s.each(l1), room[0])
        with np.errstate(over="ignore", invalid="ignore"):  # e^s may overflow
            slope = (bd + k * dd if l1 is None else s.sums(room)[0]) + C * oracle.slopes(k)
        return np.where(np.isnan(slope), np.inf, slope)

    k = two_cuts.minimise(slopes, A) if dd.any() or (oracle.free and last.any()) else np.zeros(A)
    for a, line in enumerate(s.lines):
        if line.from_model:
            k[a], line.from_model = 1.0, False
    _move(s, oracle, W, k)


def _move(s: State, oracle: ColumnsOracle, W: np.ndarray, k: np.ndarray) -> None:
    """w_b ← w_b + k_a (W − w_b), W being the point scored last. The data is not read."""
    A, C, l1, D, costly = len(s.lines), oracle.costs, oracle.l1s, oracle.size, oracle.costly
    for a, (line, doubt) in enumerate(zip(s.lines, (C * oracle.doubts(k)).tolist(), strict=True)):
        line.k = float(k[a])
        if not doubt <= _RISK * line.gap and (line.held is None or line.held[1] > line.F):
            line.held = s.of(s.best, a).flatten(), line.F, line.raised
    by_column, lost, before = (np.empty((count, A * s.width)) for count in (3, 2, 1))
    vectors.step(s.best[costly], W[costly], s.each(k), oracle.magnitudes[costly], lost, before[0], by_column)
    penalised, spreads, sizes = s.sums(by_column)
    squares = penalised
    if oracle.free:
        s.best[-1] += k * (W[-1] - s.best[-1])
        spreads, squares = spreads + oracle.magnitudes[-1] * np.abs(s.best[-1]), squares + s.best[-1] ** 2
    losses = oracle.step_all(k, spreads, np.sqrt(squares))
    for a, (line, loss) in enumerate(zip(s.lines, losses.tolist(), strict=True)):
        more = 0.0 if l1 is None else absolute_above(float(l1[a]), float(sizes[a]), D)
        line.F = objective(float(penalised[a]), D, float(C[a]), loss, more)
        line.raised = float(C[a]) * float(oracle.raises[a])  # may be infinite


def to_the_scored(s: State, oracle: ColumnsOracle, done: list[int], close: Callable[[int, float, float], bool]) -> None:
    """Move the columns that are `done` to the points scored last, where these are good enough as well: w_b is a mean over all
    points so far, and has the nonzero weights of many of them. The data is not read."""
    k, before = np.zeros(len(s.lines)), {a: (s.of(s.best, a).flatten(), s.lines[a].F, s.lines[a].raised) for a in done}
    k[done] = 1.0
    assert s.scored is not None
    _move(s, oracle, s.scored, k)
    for a, (w, F, raised) in before.items():
        line = s.lines[a]
        if close(a, line.F, line.bound):
            line.held = None
        elif line.held is None or line.held[1] > F:
            line.held = w, F, raised


def centre(s: State, oracle: ColumnsOracle, rule: StoppingRule, close: Callable[[int, float, float], bool]) -> None:
    """Move a free intercept to the middle of those that are optimal for the other weights, as LIBSVM does. Two passes.

    Where every dual variable is at a bound, as with a small C, they are an interval, and its ends predict a single class.
    """
    line, C, c_bar = s.lines[0], oracle.costs, oracle.costs * oracle.totals
    most = rule.max_passes is None or oracle.passes + 2 <= rule.max_passes
    if oracle.risk.loss.smooth or not most or line.gap > _SOLVED * line.best:
        return
    before = line.held or (s.of(s.best, 0).flatten(), line.F, line.raised)
    with suppress(Interrupted):
        for side, part in ((-1.0, 1.0), (1.0, 0.5)):  # to one end; half-way to the other
            W = s.best.copy()
            W[-1] += side
            oracle.ascend(Start(W, W, np.ones(1), np.zeros(1)), visits=0)
            end = two_cuts.minimise(lambda k: C * oracle.slopes(k) - _FLAT * c_bar, 1, narrow=_CLOSE)
            _move(s, oracle, W, part * (1.0 - _CLOSE) * end)
    line.held = None if close(0, line.F, line.bound) else before  # F may differ by rounding
