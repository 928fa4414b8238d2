"""Exact line search along w_b + k(w − w_b), k ≥ 0, in O(m) (Franc & Sonnenburg 2008, Appendix A, without its sort).

The derivative of F along the line is increasing and piecewise linear:

    F′(k) = k A₀ + B₀ + C (slope at 0 of the rows + Σ jumps of the breakpoints below k).

The paper sorts the m breakpoints. Here a histogram of the jumps over a bracket finds the bin that holds the root, the next one
looks inside that bin, and only the last few breakpoints are sorted. Histograms of parts of the rows add up, so no place ever
needs all breakpoints, and the answer is the sorted one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

_BINS = 2048
_FEW = 4096


class LossAlongLine(Protocol):
    """The rows' share of F′ (not multiplied by C), computed wherever the rows are."""

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
    if slope >= 0.0 or A0 <= 0.0:
        return 0.0
    low, high = 0.0, np.nextafter(-slope / A0, np.inf)  # F′ ≥ 0 at `high` even if no breakpoint lies below it
    while True:
        edges = np.unique(np.linspace(low, high, _BINS + 1))  # unique: a narrow bracket holds fewer float64 than bins
        jumps, counts = rows.histogram(edges)
        after = slope + C * np.cumsum(jumps)  # constant part of F′ right of each bin
        j = int(np.argmax(edges[1:] * A0 + after >= 0.0))
        if edges[j + 1] * A0 + after[j] < 0.0:  # only rounding gets here: the root is `high`
            j = len(jumps) - 1
        slope = after[j - 1] if j else slope
        low, high = float(edges[j]), float(edges[j + 1])
        if len(jumps) == 1:  # all breakpoints in the bracket are equal
            return _root(slope, A0, C, np.array([low]), jumps, high)
        if counts[j] <= _FEW:
            return _root(slope, A0, C, *rows.breakpoints(low, high, int(counts[j])), high)


def _root(slope: float, A0: float, C: float, k: np.ndarray, jump: np.ndarray, high: float) -> float:
    """Root of F′ left of `high`, by the sorted breakpoints (k, jump); `slope` is its constant part left of them all."""
    order = np.lexsort((jump, k))
    k, jump = k[order], jump[order]
    below = slope + C * (np.cumsum(jump) - jump)  # constant part just left of each breakpoint
    crossing = np.flatnonzero(below + C * jump + k * A0 >= 0.0)
    if len(crossing):
        first = crossing[0]
        if below[first] + k[first] * A0 < 0.0:
            return float(k[first])
        slope = float(below[first])
    else:
        slope += C * float(jump.sum())
    return float(min(max(-slope / A0, 0.0), high))
