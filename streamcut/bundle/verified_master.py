"""The master problem, max_β ⟨b, β⟩ − ½‖S(v, λ)‖² with v = −Σ β_t a_t, over β ≥ 0, Σβ = total, to a verified gap.

float64 is tried first: a quadratic program where λ = 0, else `solve_penalised`. Rounding in its gap
counts; where it matters, as with one column of 10⁹ among small ones, more digits take over (streamcut.bundle.precise_master).

The problem of the elastic net, λ > 0, is concave with a continuous gradient g_t = b_t + ⟨a_t, S(v, λ)⟩, and quadratic while no
weight becomes 0 or nonzero. So, from the last solution:

    repeat
        solve the quadratic problem of the nonzero features
        move to the best point between β and its solution
    until total·max g − ⟨β, g⟩, an upper bound on the remaining gain, is small

A part of the curvature of the other features is mixed in, as in a trust region: more of it after short steps, less after full
ones. With all of it the quadratic problem is below the true one everywhere, so every turn makes progress.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.bundle.kinks import longest_step
from streamcut.bundle.precise_master import solve_precisely
from streamcut.compiled import simplex_qp, thresholds, vectors
from streamcut.foundation.rounding import EPSILON

_MOST_TURNS = 300
_FIRST, _LEAST, _FACTOR = 1e-3, 1e-9, 10.0  # of the curvature of all features: mixed in at first, at least
_PATIENCE = 20  # turns without a smaller gap: rounding allows none
_SHORT = 0.3  # of a full step: shorter ones increase the part mixed in
_INSIDE = 0.1  # of the gap, or of the tolerance: accuracy of the inner problem


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


_ROUNDINGS = 8.0  # roundings of a gradient's terms: the typical error of their sum
_ENOUGH = 100.0  # of the tolerance, which is far below training's tolerance (streamcut.solvers.state)


class Verified(NamedTuple):
    """gap: upper bound on the distance to the optimal value; v (D,) = −Σ β_t a_t where it is more precise than float64 β."""

    gap: float
    v: np.ndarray | None = None


def solve_verified(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
    l1: float = 0.0, matters: float = 0.0,
) -> Verified:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or all digits are used; its value
    never falls.

    rows (T, D) are the a_t, `gram` (T, T) their products, b (T,); l1 is λ. A gap up to `matters`
    does not justify more digits.
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
