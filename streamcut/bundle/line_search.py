"""Line search along w_b + k(w − w_b), k ≥ 0, for a loss that costs a sort each: a cutting plane method in one dimension.

OCAS needs no exact minimum (any step that does not raise F keeps it correct), so it stops once most of the gain is reached.
"""

from __future__ import annotations

from typing import Protocol

_LEFT = 0.1  # of the decrease may be left
_MOST_STEPS = 20

_Tangent = tuple[float, float, float]  # k, value and slope there


class SmoothLoss(Protocol):
    """The loss along the line (not multiplied by C), for searches that evaluate one point after another."""

    guess: float  # a plausible step

    def at(self, k: float) -> tuple[float, float]:
        """(loss, a subgradient of it in k) at w_b + k(w − w_b)."""


def minimise_by_tangents(A0: float, B0: float, C: float, rows: SmoothLoss) -> float:
    """A k ≥ 0 that nearly minimises F along the line: all but _LEFT of the possible decrease is reached.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩, C the factor of the rows' losses; 0 when F does not decrease from w_b. Tangents at
    both ends of a bracket bound F from below; the next point is where that bound is lowest.

        bracket from 0 to where ½A₀k² alone has undone the slope at 0
        repeat
            k = argmin of ½A₀k² + B₀k + C max(tangent left, tangent right); F there is the new left or right end
        until F(best) − the bound ≤ _LEFT (F(0) − the bound)
    """
    loss, slope = rows.at(0.0)
    left = (0.0, loss, slope)
    at_zero = best_F = C * loss
    if B0 + C * slope >= 0.0 or A0 <= 0.0:
        return 0.0
    right, best = None, 0.0
    k = min(rows.guess, -(B0 + C * slope) / A0)
    for step in range(_MOST_STEPS):
        loss, slope = rows.at(k)
        F = 0.5 * A0 * k * k + B0 * k + C * loss
        if best_F > F:
            best, best_F = k, F
        if k * A0 + B0 + C * slope < 0.0:
            left = (k, loss, slope)
        else:
            right = (k, loss, slope)
        k, bound = _lowest(A0, B0, C, left, right)
        if best_F - bound <= _LEFT * (at_zero - bound):
            break
        if right is not None and step % 3 == 2:  # tangents may approach from one side only
            k = 0.5 * (left[0] + right[0])
    return best


def _lowest(A0: float, B0: float, C: float, left: _Tangent, right: _Tangent | None) -> tuple[float, float]:
    """(k, bound) where ½A₀k² + B₀k + C max(tangent at left, tangent at right) is lowest."""
    k = -(B0 + C * left[2]) / A0
    if right is not None:
        other = -(B0 + C * right[2]) / A0  # F's slope is negative at `left`, positive at `right`: other ≤ k
        crossing = k
        if right[2] > left[2]:
            crossing = ((left[1] - left[2] * left[0]) - (right[1] - right[2] * right[0])) / (right[2] - left[2])
        k = min(max(crossing, other), k)
    value = max(t[1] + t[2] * (k - t[0]) for t in (left, right) if t is not None)
    return k, 0.5 * A0 * k * k + B0 * k + C * value
