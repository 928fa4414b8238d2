"""Bounds on a free intercept at the optimum, from the rows themselves.

F has no slope along b at the optimum: Σ u_i σ_i f_i = 0 with f = −ℓ′, and this sum falls with b and with every score. Scores of
centred rows x_i − c at w* are within r‖x_i − c‖ of those at w_b, so the sums at the upper and at the lower ends of these
intervals have roots on both sides of b* + ⟨w*, c⟩.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma
from streamcut.io.dataset import Dataset
from streamcut.locating.problem import Located
from streamcut.locating.sums import lengths, row_gamma, rows_of, scores

Within = Callable[[Chunk, np.ndarray], tuple[np.ndarray, np.ndarray]]
ROW_BYTES = 80  # kept per row, and the same again while they are joined
_HALVINGS = 60
_FARTHEST = 1e6  # times the spread of scores
_PART = 1e-9  # of a sum's terms: far more than rounding


def distances(chunk: Chunk, center: np.ndarray) -> np.ndarray:
    """At least ‖x − c‖ of each row, float64 (n,); `center` (D,) is c and one number more."""
    sizes = lengths(chunk, 0.0) ** 2 + float(center[:-1] @ center[:-1])
    own = row_gamma(chunk) + gamma(len(center))
    return np.sqrt(np.maximum(sizes - 2.0 * scores(chunk, center, 0.0), 0.0) + 4.0 * own * sizes) * (1.0 + own)


def reach(problem: Located, data: Dataset, within: Within) -> tuple[float, float] | None:
    """(below, above): −below ≤ b* + ⟨w*, c⟩ − b_b − ⟨w_b, c⟩ ≤ above; None: not bounded. One pass.

    within   (low, high) of rows and their scores: bounds on the scores at w*, up to that difference of intercepts
    """
    kept: list[tuple[np.ndarray, ...]] = []
    for rows in rows_of(problem, data):
        least, greatest = within(rows.chunk, rows.s)
        kept.append((least - rows.doubt, greatest + rows.doubt, np.array(rows.chunk.y), rows.u))
    low, high, y, u = (np.concatenate(each) for each in zip(*kept, strict=True))
    width = float(high.max() - low.min()) + 1.0

    def balance(ends: np.ndarray) -> Callable[[float], int]:
        def sign(b: float) -> int:
            with np.errstate(over="ignore", invalid="ignore"):
                terms = u * problem.risk.duals(y, ends + b)[0]
            total, size = float(terms.sum()), float(np.abs(terms).sum())
            return 0 if not abs(total) > _PART * size else 1 if total > 0.0 else -1

        return sign

    above = _farthest(balance(low), width, -1)  # b above it makes the sum negative for the lowest possible scores
    below = _farthest(balance(high), -width, 1)
    found = max(-below, 0.0) * (1.0 + gamma(8.0)), max(above, 0.0) * (1.0 + gamma(8.0))
    return found if math.isfinite(sum(found)) else None


def _farthest(sign: Callable[[float], int], step: float, wanted: int) -> float:
    """A b with the sign `wanted` close to the sign change, in the direction of `step`; ±∞ in that direction if there is none."""
    inside, outside = 0.0, step
    if sign(0.0) == wanted:  # no farther than 0, the model's intercept
        return 0.0
    while sign(outside) != wanted:
        inside, outside = outside, 4.0 * outside
        if abs(outside) > _FARTHEST * abs(step):
            return math.copysign(math.inf, step)
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if sign(middle) == wanted:
            outside = middle
        else:
            inside = middle
        if abs(outside - inside) <= 1e-6 * abs(outside):
            break
    return outside
