"""Line searches along w_b + k(w − w_b), k ≥ 0: exact for a sum of hinges, approximate for a loss evaluated point by point.

`minimise_along_line` is exact, in O(m) (Franc & Sonnenburg 2008, Appendix A, without its sort).

The derivative of F along the line is increasing and piecewise linear:

    F′(k) = k A₀ + B₀ + C (slope at 0 of the rows + Σ jumps of the breakpoints below k).

The paper sorts the m breakpoints. Here a histogram of the jumps over a bracket finds the bin with the root, the next one
covers that bin, and only the last few breakpoints are sorted. Histograms of parts of the rows add up, so no worker ever
needs all breakpoints, and the result is that of sorting.

`minimise_by_tangents` needs few evaluations of a loss that costs a sort each: a cutting plane method in one dimension.
OCAS needs no exact minimum (any step that does not raise F keeps it correct), so it stops once most of the gain is reached.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

_BINS = 2048
_FEW = 4096
# A bracket that reaches farther than FAR by ‖w − w_b‖ alone, as where only a free intercept moves, grows from 1 instead.
FAR, FARTHER, FARTHEST = 2.0**40, 2.0**10, 1e280
_LEFT = 0.1  # of the decrease may be left
_MOST_STEPS = 20

_Tangent = tuple[float, float, float]  # k, value and slope there


class LossAlongLine(Protocol):
    """The rows' share of F′ (not multiplied by C), computed where the rows are."""

    def slope_at_zero(self) -> float: ...

    def histogram(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(jumps float64, counts int64) of the breakpoints in edges[j] ≤ k < edges[j + 1]."""

    def breakpoints(self, low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(k, jump) of the `count` breakpoints with low ≤ k < high, in any order."""


def minimise_along_line(A0: float, B0: float, C: float, rows: LossAlongLine) -> float:
    """The k ≥ 0 that minimises F along the line; 0 when F does not decrease from w_b.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩, C the factor of the rows' losses.
    """
    slope = B0 + C * rows.slope_at_zero()
    if slope >= 0.0:
        return 0.0
    low = 0.0
    if -slope < FAR * A0:
        high = np.nextafter(-slope / A0, np.inf)  # F′ ≥ 0 at `high` even if no breakpoint lies below it
    else:  # breakpoints of rows end the descent
        high = 1.0
        while high * A0 + slope + C * float(rows.histogram(np.array([0.0, high]))[0].sum()) < 0.0:
            if high > FARTHEST:
                return 0.0
            high *= FARTHER
    while True:
        edges = np.linspace(low, high, _BINS + 1)
        if not (edges[1:] > edges[:-1]).all():  # a narrow bracket holds fewer float64 than bins
            edges = np.unique(edges)
        jumps, counts = rows.histogram(edges)
        after = slope + C * np.cumsum(jumps)  # constant part of F′ right of each bin
        j = int(np.argmax(edges[1:] * A0 + after >= 0.0))
        if edges[j + 1] * A0 + after[j] < 0.0:  # reached only through rounding: the root is `high`
            j = len(jumps) - 1
        slope = after[j - 1] if j else slope
        low, high = float(edges[j]), float(edges[j + 1])
        if len(jumps) == 1:  # all breakpoints in the bracket are equal
            return _root(slope, A0, C, np.array([low]), jumps, high)
        if counts[j] <= _FEW:
            return _root(slope, A0, C, *rows.breakpoints(low, high, int(counts[j])), high)


def _root(slope: float, A0: float, C: float, k: np.ndarray, jump: np.ndarray, high: float) -> float:
    """Root of F′ left of `high`, from the sorted breakpoints (k, jump); `slope` is its constant part left of them all."""
    order = np.lexsort((jump, k))
    k, jump = k[order], jump[order]
    below = slope + C * (np.cumsum(jump) - jump)  # constant part just left of each breakpoint
    crossing = np.flatnonzero(below + C * jump + k * A0 >= 0.0)
    if len(crossing):
        first = crossing[0]
        if below[first] + k[first] * A0 < 0.0 or A0 == 0.0:
            return float(k[first])
        slope = float(below[first])
    else:
        slope += C * float(jump.sum())
    if A0 == 0.0:
        return high
    return float(min(max(-slope / A0, 0.0), high))


class SmoothLoss(Protocol):
    """The loss along the line (not multiplied by C), for searches that evaluate one point after another."""

    guess: float  # a plausible step

    def at(self, k: float) -> tuple[float, float]:
        """(loss, a subgradient of it in k) at w_b + k(w − w_b)."""


def minimise_by_tangents(A0: float, B0: float, C: float, rows: SmoothLoss) -> float:
    """A k ≥ 0 that nearly minimises F along the line: all but _LEFT of the possible decrease is reached.

    A0, B0, C as in `minimise_along_line`; 0 when F does not decrease from w_b. Tangents at both ends of a bracket bound F from
    below; the next point is where that bound is lowest.

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
