"""What follows a pass of columns without reading data: their lower bounds, and moves along lines to better points.

The cut of the newest shares is mixed with G, all older ones mixed before, by the master problem. A cut with a free intercept
pulls on it by the sum of its signed shares, which bounds nothing unless it is as good as 0, while shares are rounded to codes.
So the newest cut is first mixed with its partner, the latest one that pulled the other way, to a cut without a pull. What pull is
left has a price (streamcut.bundle.intercept).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.bundle.intercept import Interval, best_intercept
from streamcut.compiled import columns_vectors as vectors
from streamcut.execution.runner import Interrupted
from streamcut.foundation.rounding import CutError, absolute_above, combined, combined_square, dual_value, objective
from streamcut.models.certificate import Cut
from streamcut.oracles.columns import ColumnsOracle, Start
from streamcut.oracles.columns_passes import ColumnSums
from streamcut.solvers.columns_state import State
from streamcut.solvers.progress import StoppingRule


class Cuts(NamedTuple):
    """A cut of the loss of every problem: slopes −U (D, A), constants b (P,) and their errors, in units of M."""

    U: np.ndarray
    b: np.ndarray
    errors: list[CutError]


def add_shares(s: State, oracle: ColumnsOracle, sums: ColumnSums) -> Cuts:
    """Add a pass's changes `sums` of the shares to U and b; returns the cuts, without pulls as far as they have partners, which
    take the place of `sums.U`."""
    if oracle.free:
        turned = np.flatnonzero(s.U[-1] * (s.U[-1] + sums.U[-1]) < 0.0).tolist()
        for a, error in zip(turned, oracle.cut_errors(s.b[:, turned], turned), strict=True):
            s.partner[:, a], s.partner_offsets[a], s.lines[a].partner_error = s.U[:, a], s.b[0, a], error
    s.U += sums.U
    s.b += sums.b
    errors = oracle.cut_errors(s.b)
    if not oracle.free or not (opposed := s.U[-1] * s.partner[-1] < 0.0).any():
        return Cuts(s.U, s.b[0], errors)
    pull, other = np.abs(s.U[-1]), np.abs(s.partner[-1])
    q = np.where(opposed, other / np.where(opposed, pull + other, 1.0), 1.0)
    p, b = 1.0 - q, np.where(opposed, (1.0 - q) * s.partner_offsets + q * s.b[0], s.b[0])
    lengths = p * np.linalg.norm(s.partner, axis=0) + q * np.linalg.norm(s.U, axis=0)
    sizes = p * np.abs(s.partner_offsets) + q * np.abs(s.b[0])
    for a in np.flatnonzero(opposed).tolist():
        M = float(oracle.totals[a])
        length, size = float(lengths[a]) / M, float(sizes[a]) / M
        errors[a] = combined(float(p[a]), s.lines[a].partner_error, float(q[a]), errors[a], length, size)
    sums.U[:] = s.partner
    vectors.mix(s.U, p, q, sums.U)
    return Cuts(sums.U, b, errors)


def take_bounds(s: State, oracle: ColumnsOracle, newest: Cuts, squares: np.ndarray) -> None:
    """Mix the newest cuts with G, and bound every problem by the mixture; `squares` (3, P) are ‖G‖², ⟨G, U⟩, ‖U‖²."""
    costly, b, b_G, price = oracle.costly, newest.b, s.offsets, None
    if oracle.free:
        b, b_G, price = _priced(s, oracle, newest)
    p, q = two_cuts.mix(newest.U[costly], s.G[costly], b, b_G, oracle.costs, oracle.l1s, squares, price)
    _bound(s, oracle, newest, p, q, squares)
    vectors.mix(newest.U, s.each(p), s.each(q), s.G)
    s.offsets = p * s.offsets + q * newest.b


def _priced(s: State, oracle: ColumnsOracle, newest: Cuts) -> tuple[np.ndarray, np.ndarray, two_cuts.PullPrice]:
    """Narrow the intervals of intercepts; returns (b, b of G, the price of pulls) of the master problems for their middles."""
    C, M = oracle.costs, oracle.totals
    for a, (column, line, error) in enumerate(zip(oracle.active.tolist(), s.lines, oracle.cut_errors(s.b), strict=True)):
        assert line.within is not None
        w_b, c_bar, m = np.ascontiguousarray(s.best[oracle.costly, a]), float(C[a] * M[a]), float(M[a])
        latest = Cut(s.U[:, a] / -m, float(s.b[0, a]) / m, error)
        partner = Cut(s.partner[:, a] / -m, float(s.partner_offsets[a]) / m, line.partner_error)
        cuts = *oracle.cuts[column], latest, partner
        line.within = line.within.within(best_intercept(cuts, c_bar, w_b, line.F, line.bound))
    intervals = [line.within if line.within is not None and line.within.bounded else Interval(0.0, 0.0) for line in s.lines]
    middle = np.array([interval.middle for interval in intervals])
    half = np.array([interval.half for interval in intervals])
    b, b_G = newest.b - middle * newest.U[-1], s.offsets - middle * s.G[-1]
    return b, b_G, two_cuts.PullPrice(C * s.G[-1], C * newest.U[-1], half)


def _bound(s: State, oracle: ColumnsOracle, newest: Cuts, p: np.ndarray, q: np.ndarray, squares: np.ndarray) -> None:
    """Bound every column by its mixture pG + qU; where that is no better than G alone, set p = 1 and q = 0, in place."""
    M, C, D, l1 = oracle.totals, oracle.costs, oracle.size, oracle.l1s
    if l1 is not None:
        out = two_cuts.dual_model(newest.U[oracle.costly], s.G[oracle.costly], p, q, C, l1)
    for a, (line, cut) in enumerate(zip(s.lines, newest.errors, strict=True)):
        m, pa, qa, c_bar = float(M[a]), float(p[a]), float(q[a]), float(C[a] * M[a])
        gg, gu, uu = (squares[:, a] / (m * m)).tolist()
        size, pull = pa * np.sqrt(gg) + qa * np.sqrt(uu), 0.0
        if line.within is not None:
            pull = -(pa * s.G[-1, a] + qa * newest.U[-1, a]) / m
            size += (pa * abs(s.G[-1, a]) + qa * abs(newest.U[-1, a])) / m
        b, offset = (pa * s.offsets[a] + qa * newest.b[a]) / m, (pa * abs(s.offsets[a]) + qa * abs(newest.b[a])) / m
        b, error = float(b), combined(pa, line.error, qa, cut, float(size), float(offset))
        square = combined_square(pa, qa, gg, gu, uu, D) if l1 is None else float(out[0, a]) / (c_bar * c_bar)
        says, off = (b, error) if line.within is None else line.within.settled(b, error, float(pull))
        bound = dual_value(c_bar, square, says, off, D)
        if bound > line.bound:  # false as long as nothing is known of an intercept
            line.bound, line.error = bound, error
            line.taken = float(c_bar * says - 0.5 * c_bar * c_bar * square) - bound
        else:
            p[a], q[a] = 1.0, 0.0


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
