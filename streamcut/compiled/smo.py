"""Sequential minimal optimisation on cached kernel columns: selection of the working set, and steps.

The dual is min ½ Σ α_i α_j y_i y_j k(x_i, x_j) − Σ α_i over 0 ≤ α_i ≤ upper_i and, with a bias, Σ y_i α_i = 0. `gradient` is its
gradient y_i f(x_i) − 1. Only the rows `active` (increasing row numbers) are read; a column holds k of its row with them, float32,
`len(active)` numbers at slot·len(active) of `cache`; `slot_of` (m) is its slot (−1: none), `stamps` its last use. A row whose
column is missing is returned to the caller, who fills the column and calls again. There are as many slots as fit into `cache`
(KernelCache), at least two.
"""

import numpy as np

from streamcut.compiler.jit import inlined, kernel

DONE, MISSING, PAUSE = 0, 1, 2
_TINY = 1e-12  # curvature used for a pair without curvature


@inlined
def _can_grow(sign, alpha, upper):
    """Whether y·α may become larger."""
    return alpha < upper if sign > 0 else alpha > 0.0


@inlined
def _can_fall(sign, alpha, upper):
    """Whether y·α may become smaller."""
    return alpha > 0.0 if sign > 0 else alpha < upper


@kernel
def pairs(active, sign, upper, diagonal, cache, slot_of, stamps, clock, alpha, gradient, tolerance, steps):
    """At most `steps` steps along pairs, in place. Returns (reason for the end, the row whose column is missing, steps done).

    The first row violates optimality most; the second, among those that violate it with the first, has the largest predicted
    second-order decrease (Fan, Chen & Lin 2005, WSS 2). DONE: no pair violates it by `tolerance`.
    """
    n = np.uint64(len(active))
    for step in range(steps):
        highest, first = -np.inf, -1
        for p in range(n):
            t = active[p]
            value = -gradient[t] if sign[t] > 0 else gradient[t]
            if value > highest and _can_grow(sign[t], alpha[t], upper[t]):
                highest, first = value, t
        if first < 0:
            return DONE, -1, step
        if slot_of[first] < 0:
            return MISSING, first, step
        at = np.uint64(slot_of[first]) * n
        stamps[slot_of[first]] = clock + step
        lowest, best, second = np.inf, 0.0, -1
        for p in range(n):
            t = active[p]
            value = -gradient[t] if sign[t] > 0 else gradient[t]
            if value < highest and _can_fall(sign[t], alpha[t], upper[t]):
                lowest = min(lowest, value)
                ahead = highest - value
                curvature = max(diagonal[first] + diagonal[t] - 2.0 * np.float64(cache[at + p]), _TINY)
                if ahead * ahead > best * curvature:
                    best, second = ahead * ahead / curvature, t
        if second < 0 or highest - lowest < tolerance:
            return DONE, -1, step
        if slot_of[second] < 0:
            return MISSING, second, step
        other = np.uint64(slot_of[second]) * n
        stamps[slot_of[second]] = clock + step
        place = np.uint64(np.searchsorted(active, second))
        curvature = max(diagonal[first] + diagonal[second] - 2.0 * np.float64(cache[at + place]), _TINY)
        rise = -gradient[first] if sign[first] > 0 else gradient[first]
        fall = -gradient[second] if sign[second] > 0 else gradient[second]
        room_first = upper[first] - alpha[first] if sign[first] > 0 else alpha[first]
        room_second = alpha[second] if sign[second] > 0 else upper[second] - alpha[second]
        length = min((rise - fall) / curvature, min(room_first, room_second))
        if length == room_first:
            alpha[first] = upper[first] if sign[first] > 0 else 0.0
        else:
            alpha[first] += length if sign[first] > 0 else -length
        if length == room_second:
            alpha[second] = 0.0 if sign[second] > 0 else upper[second]
        else:
            alpha[second] += -length if sign[second] > 0 else length
        for p in range(n):
            t = active[p]
            change = length * (np.float64(cache[at + p]) - np.float64(cache[other + p]))
            gradient[t] += change if sign[t] > 0 else -change
    return PAUSE, -1, steps


@kernel
def singles(active, sign, upper, diagonal, cache, slot_of, stamps, clock, alpha, gradient, tolerance, steps):
    """The same without a bias: steps along single rows, each the one with the largest g²/k(x, x)."""
    n = np.uint64(len(active))
    for step in range(steps):
        best, row, violation = 0.0, -1, 0.0
        for p in range(n):
            t = active[p]
            g = gradient[t]
            if (g < 0.0 and alpha[t] < upper[t]) or (g > 0.0 and alpha[t] > 0.0):
                violation = max(violation, abs(g))
                if g * g > best * max(diagonal[t], _TINY):
                    best, row = g * g / max(diagonal[t], _TINY), t
        if row < 0 or violation < tolerance:
            return DONE, -1, step
        if slot_of[row] < 0:
            return MISSING, row, step
        at = np.uint64(slot_of[row]) * n
        stamps[slot_of[row]] = clock + step
        after = min(max(alpha[row] - gradient[row] / max(diagonal[row], _TINY), 0.0), upper[row])
        length = (after - alpha[row]) * sign[row]
        alpha[row] = after
        for p in range(n):
            t = active[p]
            change = length * np.float64(cache[at + p])
            gradient[t] += change if sign[t] > 0 else -change
    return PAUSE, -1, steps
