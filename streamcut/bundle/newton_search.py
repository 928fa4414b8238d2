"""Line search along w_b + k(w − w_b), k ≥ 0, for smooth losses: Newton's method with a bracket.

The derivative of F along the line is F′(k) = k A₀ + B₀ + C·slope(k), increasing, with F″ = A₀ + C·curvature(k). Slope and
curvature of the rows' losses cost one look at the row state each time, and no look at the data.

    bracket from 0 to where ½A₀k² alone has undone the slope at 0
    repeat
        Newton's step from the last k; where it leaves the bracket, or is more than half as long as the last: to the middle
    until the step is no more than 1e-13 k, or F′ is what rounding leaves of it
"""

from __future__ import annotations

from typing import Protocol

_SMALL = 1e-13
_ROUNDING = 1e-15  # of the parts of F′, which nearly cancel at the minimum
_MOST_LOOKS = 60  # two to eight do; a bracket that is halved each time is done by then


class SmoothLossAlongLine(Protocol):
    """The rows' share of F′ and F″ (not multiplied by C), computed wherever the rows are."""

    def slopes(self, k: float) -> tuple[float, float]:
        """(slope, curvature) of the losses at k."""


def minimise_by_newton(A0: float, B0: float, C: float, rows: SmoothLossAlongLine) -> float:
    """The k ≥ 0 that minimises F along the line; 0 when F does not decrease from w_b.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩, C the factor of the rows' losses.
    """
    slope, curvature = rows.slopes(0.0)
    rise, bend = B0 + C * slope, A0 + C * curvature
    if rise >= 0.0 or A0 <= 0.0:
        return 0.0
    low, high, k = 0.0, -rise / A0, 0.0
    last = high
    for _ in range(_MOST_LOOKS):
        move = -rise / bend
        rounding = _ROUNDING * max(abs(B0), abs(C * slope), k * A0)
        if abs(move) <= _SMALL * k or abs(rise) <= rounding:
            break
        if not low < k + move < high or abs(move) > 0.5 * last:
            move = 0.5 * (low + high) - k
        k, last = k + move, abs(move)
        slope, curvature = rows.slopes(k)
        rise, bend = k * A0 + B0 + C * slope, A0 + C * curvature
        low, high = (k, high) if rise < 0.0 else (low, k)
    return k
