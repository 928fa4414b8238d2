"""The master problem, max_β ⟨b, β⟩ − ½‖S(v, λ)‖² with v = −Σ β_t a_t, over β ≥ 0, Σβ = total, to a verified gap.

It is a quadratic program where λ = 0; else `solve_penalised` solves it. Rounding counts in its gap.

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

import numpy as np

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


def solve_verified(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float = 0.0,
) -> float:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or rounding stops it.

    rows (T, D) are the a_t, `gram` (T, T) their products, b (T,); l1 is λ. Returns an upper bound on the gap.
    """
    if l1 == 0.0:
        gap = solve_master(gram, b, total, beta, tolerance)
    else:
        gap = solve_penalised(rows, gram, b, total, beta, tolerance, l1)
    sizes = np.abs(b) + np.abs(gram) @ beta
    return gap + _ROUNDINGS * EPSILON * total * float(sizes.max())


_ROOT_STEPS = 60
_ROOT_PART = 1e-9


def longest_step(v: np.ndarray, delta: np.ndarray, gain: float, l1: float, low: float = 0.0) -> float:
    """The θ ∈ [low, 1] that maximises θ·gain − ½‖S(v + θδ, λ)‖², which still rises at `low`.

    Its derivative falls and is piecewise linear: Newton's method with a bracket.
    """
    high, theta = 1.0, 1.0
    for _ in range(_ROOT_STEPS):
        slope, curvature = thresholds.slope_along(v, delta, l1, theta)
        rise = gain - slope
        if rise >= 0.0:
            low = theta
        else:
            high = theta
        if low == 1.0 or high - low <= _ROOT_PART * high:
            break
        after = theta + rise / curvature if curvature > 0.0 else 0.5 * (low + high)
        if abs(after - theta) <= _ROOT_PART * theta:
            break
        theta = after if low < after < high else 0.5 * (low + high)
    return theta
