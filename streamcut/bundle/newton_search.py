"""Line search along w_b + k(w − w_b), k ≥ 0, for smooth losses: Newton's method with a bracket.

The derivative of F along the line is F′(k) = k A₀ + B₀ + C·slope(k), increasing, with F″ = A₀ + C·curvature(k). Slopes and
curvatures of the rows' losses at one or more k cost a pass over the row state, and none over the data.

    bracket from 0 to where ½A₀k² alone has undone the slope at 0; where a free intercept moves (almost) alone, A₀ = 0, to where
        F rises
    repeat
        Newton's step from the last k, doubled where it is more than half as long as the last; to the midpoint where that
        leaves the bracket
        after a few steps: many points of the bracket at once, and Newton's step from the best
    until the step is at most 0.01 k (1e-4 of the search's gain is left) and F′ a tenth of that at 0, or F′ is
    within rounding. Where F rises like e^k the step alone is no criterion: it is short however far k is beyond the minimum.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from streamcut.bundle.line_search import FAR, FARTHER, FARTHEST

_SMALL = 0.01  # 1e-3 and 1e-13 give the same passes (24 cases to two tolerances) and take more time
_LEVEL = 0.1
_FLATTEST = 1e-300  # curvature
_ROUNDING = 1e-15  # of the parts of F′, which nearly cancel at the minimum
_ALONE = 5  # passes with a single point: most lines take no more
_TOGETHER = 24  # points of each later pass
_MOST = 20  # passes; brackets shrink 25-fold in each of the later ones


class SmoothLossAlongLine(Protocol):
    """The rows' share of F′ and F″ (not multiplied by C), computed where the rows are."""

    def slopes(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(slopes, curvatures) of the losses at each k."""


@np.errstate(over="ignore", invalid="ignore")
def minimise_by_newton(A0: float, B0: float, C: float, rows: SmoothLossAlongLine) -> float:
    """The k ≥ 0 that minimises F along the line; 0 when F does not decrease from w_b.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩, C the factor of the rows' losses.
    """

    def slopes(k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F′, F″ and the rounding error of F′ at each k."""
        slope, curvature = rows.slopes(k)
        rises, bends = k * A0 + B0 + C * slope, A0 + C * curvature
        parts = np.maximum(np.maximum(np.abs(C * slope), abs(B0)), k * A0)
        known = np.isfinite(rises) & np.isfinite(bends)  # where exponentials overflow, F rises too steeply
        bends = np.where(known, np.maximum(bends, _FLATTEST), 1.0)
        return np.where(known, rises, np.inf), bends, np.where(known, _ROUNDING * parts, 0.0)

    (rise,), (bend,), _ = slopes(np.zeros(1))
    if not rise < 0.0:
        return 0.0
    level = -_LEVEL * rise
    low, high, k = 0.0, 1.0, 0.0
    if -rise < FAR * A0:
        high = -rise / A0
    else:
        while high < FARTHEST and slopes(np.array([high]))[0][0] < 0.0:
            low, high = high, FARTHER * high
    last = high
    for number in range(_MOST):
        move = -rise / bend
        inside = low < k + move < high
        if number < _ALONE:
            if abs(move) > 0.5 * last and low < k + 2.0 * move < high:
                move *= 2.0  # the curvature of F falls that way
            elif not inside:
                move = 0.5 * (low + high) - k
            points = np.array([k + move])
        else:
            between = np.linspace(low, high, _TOGETHER + 2)[1:-1]
            if low > 0.0 and high > 8.0 * low:
                between = np.geomspace(low, high, _TOGETHER + 2)[1:-1]
            points = np.unique(np.append(between, k + move if inside else k))
        rises, bends, rounding = slopes(points)
        below = rises < 0.0
        low = max([low, *points[below]])
        high = min([high, *points[~below]])
        best = int(np.argmin(np.abs(rises / bends)))
        last = abs(points[best] - k)
        k, rise, bend = float(points[best]), float(rises[best]), float(bends[best])
        short = abs(rise / bend) <= _SMALL * k and abs(rise) <= level
        if short or abs(rise) <= rounding[best] or high - low <= _SMALL * high:
            break
    else:
        return low  # F falls up to there at least
    return k if rise < math.inf else low
