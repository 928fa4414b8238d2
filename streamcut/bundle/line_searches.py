"""Line searches of several problems in step, so that one pass over the rows serves all of them.

The derivative along each line is F′(k) = k A₀ + B₀ + C (slope at 0 of the rows + Σ jumps of the breakpoints below k), increasing
and piecewise linear. Histograms of the jumps over a bracket narrow it to one bin, again and again. Where the search for a single
problem (streamcut.bundle.line_search) goes on to sort the last few breakpoints, this one stops: its k is off by a 10⁻⁹th of the
first bracket at most, and F at k is evaluated afterwards in any case.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

BINS = 1024
_ROUNDS = 3


class LossesAlongLines(Protocol):
    """The rows' share of A derivatives (not multiplied by C), computed wherever the rows are."""

    def slopes_at_zero(self) -> np.ndarray: ...

    def histograms(self, low: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Jumps (A, BINS) of the breakpoints in each bin: bin j of problem a begins at low[a] + j width[a]."""


def minimise_along_lines(A0: np.ndarray, B0: np.ndarray, C: float, rows: LossesAlongLines) -> np.ndarray:
    """The k ≥ 0 (A,) that minimise F along each line, 0 where F does not decrease.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩ for each problem, C the factor of the rows' losses.
    """
    slope = B0 + C * rows.slopes_at_zero()
    falls = (slope < 0.0) & (A0 > 0.0)
    A0 = np.where(falls, A0, 1.0)
    slope = np.where(falls, slope, 0.0)
    low, width = np.zeros(len(A0)), np.where(falls, -slope / A0, 1.0) / BINS
    each = np.arange(len(A0))
    for _ in range(_ROUNDS):
        after = slope[:, None] + C * np.cumsum(rows.histograms(low, width), axis=1)  # constant part of F′ right of each bin
        edges = low[:, None] + np.arange(1, BINS + 1) * width[:, None]
        rises = edges * A0[:, None] + after >= 0.0
        j = np.where(rises.any(axis=1), rises.argmax(axis=1), BINS - 1)  # no edge rises: only rounding gets there
        slope = np.where(j > 0, after[each, j - 1], slope)
        low, width = low + j * width, np.maximum(width / BINS, 1e-300)
    return np.where(falls, np.clip(-slope / A0, low, low + BINS * width), 0.0)
