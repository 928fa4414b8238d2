"""The master problem with a free intercept: it lies in an interval, and the pull on it is priced by the half-width.

    max_β  ⟨b + m·a₀, β⟩ − ½ βᵀGβ − B |⟨a₀, β⟩|    over β ≥ 0, Σβ = total,    [m − B, m + B] the interval,

is the dual of minimising ½‖w‖² + total·max_t(⟨a_t, w⟩ + a₀_t·c + b_t) over all w and all c in the interval, which
streamcut.bundle.intercept proves. The multiplier of the price is c. An equality ⟨a₀, β⟩ = 0 is no option:
rounding leaves all cuts near an optimum with a₀ of one sign, and then only the zero cut would be feasible.
"""

from __future__ import annotations

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.bundle.interior_point import interior_point
from streamcut.foundation.rounding import EPSILON

_NOTHING = 1e-13  # of the whole mixture: parts that interior points leave in place of 0
_ROUNDINGS = 8.0  # roundings of a gradient's terms: the typical error of their sum


def solve_priced(
    gram: np.ndarray, b: np.ndarray, pulls: np.ndarray, total: float, beta: np.ndarray, within: Interval
) -> tuple[float, float]:
    """Write the best mixture of T cuts to `beta` (T,); returns (an upper bound on its gap, up to rounding; the intercept).

    gram (T, T) has the products of the cuts, without the pulls on the intercept: `pulls` (T,). The first cut is the zero cut.
    """
    T = len(b)
    square, pull, linear = total * total * gram, total * pulls, total * (b + pulls * within.middle)
    unit = max(float(np.abs(pull).max()), 1e-6 * float(np.abs(linear).max()), 1e-300)
    Q, c, E = np.zeros((T + 2, T + 2)), np.append(-linear, [within.half * unit] * 2), np.zeros((2, T + 2))
    Q[:T, :T] = square
    E[0, :T], E[1, :T], E[1, T], E[1, T + 1] = 1.0, pull / unit, 1.0, -1.0
    parts, multipliers = interior_point(Q, c, E, np.array([1.0, 0.0]))
    mixture = np.where(parts[:T] > _NOTHING, parts[:T], 0.0)
    beta[:] = total / mixture.sum() * mixture
    off = float(np.clip(multipliers[1] / unit, -within.half, within.half))
    products, pulled = gram @ beta, float(pulls @ beta)
    above = b - products + pulls * (within.middle + off)
    value = float((b + pulls * within.middle) @ beta) - float(beta @ products) - within.half * abs(pulled)
    sizes = np.abs(b) + np.abs(gram) @ beta + np.abs(pulls) * (within.largest + within.half)
    gap = total * float(above.max()) - value + _ROUNDINGS * EPSILON * total * float(sizes.max())
    return max(0.0, gap), within.middle + off
