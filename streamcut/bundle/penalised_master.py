"""The master problem of the elastic net: max_β ⟨b, β⟩ − ½‖S(v, λ)‖², v = −Σ β_t a_t, over β ≥ 0, Σβ = total.

It is concave with a continuous gradient g_t = b_t + ⟨a_t, S(v, λ)⟩, and quadratic as long as no weight becomes 0 or ceases to
be. So, from the last solution on:

    repeat
        solve the quadratic problem of the features that are not 0 (streamcut.bundle.master)
        go to the best point between β and its solution
    until total·max g − ⟨β, g⟩, which is at least what is left to gain, is small

A part of the curvature of the other features is mixed in, as in a trust region: more of it after short steps, less after whole
ones. With all of it the quadratic problem is below the true one everywhere, so no turn is in vain.
"""

from __future__ import annotations

import numpy as np

from streamcut.bundle.master import solve_master
from streamcut.bundle.thresholded_step import longest_step
from streamcut.compiled import thresholds, vectors

_TURNS = 300
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
    for _ in range(_TURNS):
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
