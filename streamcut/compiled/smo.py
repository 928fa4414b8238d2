"""Sequential minimal optimisation on cached kernel columns: selection of the working set, and steps.

The dual is max Σ y_i β_i − ½ Σ β_i β_j k(x_i, x_j) over low_i ≤ β_i ≤ high_i, β = yα, and, with a bias, Σ β_i = 0. `gradient` is
its gradient y_i − f(x_i). Only the rows `active` (increasing row numbers) are read; a column holds k of its row with them,
float32, `len(active)` numbers at slot·len(active) of `cache`; `slot_of` (m) is its slot (−1: none), `stamps` its last use. A row
whose column is missing is returned to the caller, who fills the column and calls again. There are as many slots as fit into
`cache` (KernelCache), at least two.
"""

import numpy as np

from streamcut.compiler.jit import kernel

DONE, MISSING, PAUSE = 0, 1, 2
_TINY = 1e-12  # curvature used for a pair without curvature


@kernel
def pairs(active, low, high, diagonal, cache, slot_of, stamps, clock, beta, gradient, tolerance, steps):
    """At most `steps` steps along pairs, in place. Returns (reason for the end, the row whose column is missing, steps done).

    The first row violates optimality most; the second, among those that violate it with the first, has the largest predicted
    second-order increase (Fan, Chen & Lin 2005, WSS 2). DONE: no pair violates it by `tolerance`.
    """
    n = np.uint64(len(active))
    for step in range(steps):
        highest, first = -np.inf, -1
        for p in range(n):
            t = active[p]
            if gradient[t] > highest and beta[t] < high[t]:
                highest, first = gradient[t], t
        if first < 0:
            return DONE, -1, step
        if slot_of[first] < 0:
            return MISSING, first, step
        at = np.uint64(slot_of[first]) * n
        stamps[slot_of[first]] = clock + step
        lowest, best, second = np.inf, 0.0, -1
        for p in range(n):
            t = active[p]
            if gradient[t] < highest and beta[t] > low[t]:
                lowest = min(lowest, gradient[t])
                ahead = highest - gradient[t]
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
        up, down = high[first] - beta[first], beta[second] - low[second]
        length = min((gradient[first] - gradient[second]) / curvature, min(up, down))
        beta[first] = high[first] if length == up else beta[first] + length
        beta[second] = low[second] if length == down else beta[second] - length
        for p in range(n):
            gradient[active[p]] -= length * (np.float64(cache[at + p]) - np.float64(cache[other + p]))
    return PAUSE, -1, steps


@kernel
def singles(active, low, high, diagonal, cache, slot_of, stamps, clock, beta, gradient, tolerance, steps):
    """The same without a bias: steps along single rows, each the one with the largest g²/k(x, x)."""
    n = np.uint64(len(active))
    for step in range(steps):
        best, row, violation = 0.0, -1, 0.0
        for p in range(n):
            t = active[p]
            g = gradient[t]
            if (g > 0.0 and beta[t] < high[t]) or (g < 0.0 and beta[t] > low[t]):
                violation = max(violation, abs(g))
                if g * g > best * max(diagonal[t], _TINY):
                    best, row = g * g / max(diagonal[t], _TINY), t
        if row < 0 or violation < tolerance:
            return DONE, -1, step
        if slot_of[row] < 0:
            return MISSING, row, step
        at = np.uint64(slot_of[row]) * n
        stamps[slot_of[row]] = clock + step
        before = beta[row]
        beta[row] = min(max(before + gradient[row] / max(diagonal[row], _TINY), low[row]), high[row])
        for p in range(n):
            gradient[active[p]] -= (beta[row] - before) * np.float64(cache[at + p])
    return PAUSE, -1, steps
