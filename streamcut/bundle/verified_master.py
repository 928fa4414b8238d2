"""The master problem, max_β ⟨b, β⟩ − ½‖S(v, λ)‖² with v = −Σ β_t a_t, over β ≥ 0, Σβ = total, to a gap that is known.

float64 is asked first: a quadratic program where λ = 0, else `solve_penalised`. What rounding may hide of its gap
counts; where that matters, as with one column of 10⁹ among small ones, more digits go on (streamcut.bundle.precise_master).

That of the elastic net, λ > 0, is concave with a continuous gradient g_t = b_t + ⟨a_t, S(v, λ)⟩, and quadratic as long as no
weight becomes 0 or ceases to be. So, from the last solution on:

    repeat
        solve the quadratic problem of the features that are not 0
        go to the best point between β and its solution
    until total·max g − ⟨β, g⟩, which is at least what is left to gain, is small

A part of the curvature of the other features is mixed in, as in a trust region: more of it after short steps, less after whole
ones. With all of it the quadratic problem is below the true one everywhere, so no turn is in vain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.bundle.precise_master import solve_precisely
from streamcut.bundle.thresholded_step import longest_step
from streamcut.compiled import simplex_qp, thresholds, vectors
from streamcut.foundation.rounding import EPSILON

_MOST_TURNS = 300
_FIRST, _LEAST, _FACTOR = 1e-3, 1e-9, 10.0  # of the curvature of all features: mixed in at first, at the least
_PATIENCE = 20  # turns that bring no smaller gap: rounding allows none
_SHORT = 0.3  # of the way: steps after which more is mixed in
_INSIDE = 0.1  # of the gap: the inner problem is solved to it, or to so much of the tolerance


def solve_penalised(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float,
) -> float:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or rounding stops it; returns the gap.

    rows (T, D) are the a_t, `gram` (T, T) their products, l1 is λ.
    """
    v, w, delta = np.empty(rows.shape[1]), np.empty(rows.shape[1]), np.empty(rows.shape[1])
    products, active = np.empty(len(b)), np.empty_like(gram)
    best, kept, part, late = np.inf, beta.copy(), _FIRST, 0
    for _ in range(_MOST_TURNS):
        vectors.combine(rows, -beta, v)
        thresholds.shrink(v, l1, w)
        vectors.dots(rows, w, products)
        gradient = b + products
        gap = max(0.0, total * float(gradient.max()) - float(beta @ gradient))
        late = 0 if gap < 0.9 * best else late + 1
        if gap < best:
            best, kept = gap, beta.copy()
        if gap <= tolerance or late == _PATIENCE:
            break
        thresholds.active_gram(rows, w, active)
        active += part * (gram - active)
        target = beta.copy()
        solve_master(active, gradient + active @ beta, total, target, _INSIDE * min(gap, max(tolerance, 1e-3 * gap)))
        direction = target - beta
        vectors.combine(rows, -direction, delta)
        k = longest_step(v, delta, float(direction @ b), l1)
        if k < _SHORT:
            part = min(1.0, part * _FACTOR)
        elif k == 1.0:
            part = max(_LEAST, part / _FACTOR)
        beta += k * direction
        np.maximum(beta, 0.0, out=beta)
        beta *= total / beta.sum()
    beta[:] = kept
    return best


_TURNS = 500


def solve_master(G: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float) -> float:
    """Improve the feasible `beta` (T,) in place until the dual gap is at most `tolerance`, or rounding stops it; returns the gap.

    G (T, T) symmetric positive semidefinite, singular allowed; b (T,); all float64.
    """
    return simplex_qp.solve(G, b, total, beta, tolerance, _TURNS, simplex_qp.space(len(b)))


_ROUNDINGS = 8.0  # of the terms of a gradient: what their sum is off by, as a rule
_ENOUGH = 100.0  # of the tolerance, which is far below what training waits for (streamcut.solvers.state)


class Verified(NamedTuple):
    """gap: the value is at most so far below the optimum; v (D,) = −Σ β_t a_t where it is known better than β in float64 says."""

    gap: float
    v: np.ndarray | None = None


def solve_verified(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
    l1: float = 0.0, matters: float = 0.0,
) -> Verified:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or all digits are used up; its value never
    falls.

    rows (T, D) are the a_t, `gram` (T, T) their products, b (T,); l1 is λ. A gap up to
    `matters` is good enough for more digits not to be worth their time.
    """
    enough = max(_ENOUGH * tolerance, matters)
    before = beta.copy()
    if l1 == 0.0:
        gap = solve_master(gram, b, total, beta, tolerance)
    else:
        gap = solve_penalised(rows, gram, b, total, beta, tolerance, l1)
    sizes = np.abs(b) + np.abs(gram) @ beta
    gap += _ROUNDINGS * EPSILON * total * float(sizes.max())
    if gap <= enough:
        return Verified(gap)
    precise = solve_precisely(rows, b, total, beta, tolerance, l1)
    found = Verified(gap) if precise is None else Verified(*precise)
    if found.gap <= enough:
        return found
    value, known = _value(rows, b, beta, found.v, l1), _value(rows, b, before, None, l1)
    if value >= known:
        return found
    beta[:] = before
    return Verified(found.gap + known - value if np.isfinite(value) else np.inf)


def _value(rows: np.ndarray, b: np.ndarray, beta: np.ndarray, v: np.ndarray | None, l1: float) -> float:
    w = np.empty(rows.shape[1])
    if v is None:
        vectors.combine(rows, -beta, w)
    else:
        w[:] = v
    if l1 > 0.0:
        thresholds.shrink(w, l1, w)
    return float(beta @ b) - 0.5 * vectors.dot(w, w)
