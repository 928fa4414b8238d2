"""Lower bounds of columns: the cut of the newest shares is mixed with G, all older ones mixed before, by the master problem.

A cut with a free intercept pulls on it by the sum of its signed shares, which bounds nothing unless it is as good as 0, while the
shares are rounded to codes. So the newest cut is first mixed with its partner, the latest one that pulled the other way, to a cut
without a pull. What pull is left has a price (streamcut.bundle.intercept).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.bundle.intercept import Interval, best_intercept
from streamcut.compiled import columns_vectors as vectors
from streamcut.foundation.rounding import CutError, combined, combined_square, dual_value
from streamcut.oracles.columns import ColumnsOracle
from streamcut.oracles.columns_passes import ColumnSums
from streamcut.oracles.decomposable import Cut
from streamcut.solvers.columns_state import State


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


def _priced(s: State, oracle: ColumnsOracle, newest: Cuts) -> tuple[np.ndarray, np.ndarray, two_cuts.Price]:
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
    return b, b_G, two_cuts.Price(C * s.G[-1], C * newest.U[-1], half)


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
