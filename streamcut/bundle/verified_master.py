"""The master problem, max_β ⟨b, β⟩ − ½‖S(v, λ)‖² with v = −Σ β_t a_t, over β ≥ 0, Σβ = total, to a gap that is known.

float64 is asked first (streamcut.bundle.master; streamcut.bundle.penalised_master where λ > 0). What rounding may hide of its gap
counts; where that matters, as with one column of 10⁹ among small ones, more digits go on (streamcut.bundle.precise_master).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.bundle.master import solve_master
from streamcut.bundle.penalised_master import solve_penalised
from streamcut.bundle.precise_master import solve_precisely
from streamcut.compiled import thresholds, vectors
from streamcut.foundation.rounding import EPSILON

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
