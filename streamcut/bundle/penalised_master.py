"""The master problem of the elastic net: max_β ⟨b, β⟩ − ½‖S(v, λ)‖², v = −Σ β_t a_t, over β ≥ 0, Σβ = total.

It is concave with a continuous gradient g_t = b_t + ⟨a_t, S(v, λ)⟩, and quadratic as long as no weight becomes 0 or ceases to
be. So, from the last solution on:

    repeat
        solve the quadratic problem of the features that are not 0 (streamcut.bundle.master)
        go to the best point between β and its solution
    until total·max g − ⟨β, g⟩, which is at least what is left to gain, is small

Where that does not halve the gap for some turns, the curvature of the other features is mixed in: with all of it the quadratic
problem is below the true one everywhere, and no turn is in vain.
"""

from __future__ import annotations

import numpy as np

from streamcut.bundle.master import solve_master
from streamcut.bundle.thresholded_step import longest_step
from streamcut.compiled import thresholds, vectors

_TURNS = 100
_PATIENCE = 3  # turns that do not halve the gap, until more of the curvature is mixed in
_PARTS = (0.0, 0.01, 0.1, 1.0)  # of the curvature of all features
_INSIDE = 0.1  # of the gap: the inner problem is solved to it, or to so much of the tolerance


def solve_penalised(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float
) -> float:
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or rounding stops it; returns the gap.

    rows (T, D) are the a_t, `gram` (T, T) their products, l1 is λ.
    """
    v, w, delta = np.empty(rows.shape[1]), np.empty(rows.shape[1]), np.empty(rows.shape[1])
    products, active = np.empty(len(b)), np.empty_like(gram)
    best, kept = np.inf, beta.copy()
    part = late = 0
    least = np.inf
    for _ in range(_TURNS):
        vectors.combine(rows, -beta, v)
        thresholds.shrink(v, l1, w)
        vectors.dots(rows, w, products)
        gradient = b + products
        gap = max(0.0, total * float(gradient.max()) - float(beta @ gradient))
        if gap < best:
            best, kept = gap, beta.copy()
        if gap <= tolerance:
            break
        late = 0 if gap < 0.5 * least else late + 1
        least = min(least, gap)
        if late == _PATIENCE:
            part, late = part + 1, 0
            if part == len(_PARTS):
                break
        thresholds.active_gram(rows, w, active)
        active += _PARTS[part] * (gram - active)
        target = beta.copy()
        solve_master(active, gradient + active @ beta, total, target, _INSIDE * min(gap, max(tolerance, 1e-3 * gap)))
        direction = target - beta
        vectors.combine(rows, -direction, delta)
        k = longest_step(v, delta, float(direction @ b), l1)
        if k == 0.0:
            break
        beta += k * direction
        np.maximum(beta, 0.0, out=beta)
        beta *= total / beta.sum()
    beta[:] = kept
    return best
