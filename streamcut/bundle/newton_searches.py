"""Line searches of several problems with smooth losses in step, so that one look at the rows serves all of them.

Each takes Newton's steps in a bracket, as streamcut.bundle.newton_search does: where one leaves the bracket, or is more than half
as long as the last, it goes to the middle. A problem that is done waits where it is for the others.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

SMALL = 1e-13
ROUNDING = 1e-15  # of the parts of F′, which nearly cancel at the minimum
MOST_LOOKS = 60  # two to eight do; a bracket that is halved each time is done by then


class SmoothLossesAlongLines(Protocol):
    """The rows' share of A derivatives (not multiplied by C), computed wherever the rows are."""

    def slopes(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(slopes, curvatures) of the losses, (A,) each, at k (A,)."""


def minimise_by_newton_along(A0: np.ndarray, B0: np.ndarray, C: float, rows: SmoothLossesAlongLines) -> np.ndarray:
    """The k ≥ 0 (A,) that minimise F along each line, 0 where F does not decrease.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩ for each problem, C the factor of the rows' losses.
    """
    k = np.zeros(len(A0))
    slope, curvature = rows.slopes(k)
    rise, bend = B0 + C * slope, A0 + C * curvature
    going = (rise < 0.0) & (A0 > 0.0)
    low, high = np.zeros(len(A0)), np.where(going, -rise / np.where(going, A0, 1.0), 0.0)
    last = high.copy()
    for _ in range(MOST_LOOKS):
        move = -rise / np.where(bend > 0.0, bend, 1.0)
        rounding = ROUNDING * np.maximum(np.maximum(np.abs(B0), np.abs(C * slope)), k * A0)
        going &= (np.abs(move) > SMALL * k) & (np.abs(rise) > rounding)
        if not going.any():
            break
        inside = (low < k + move) & (k + move < high) & (np.abs(move) <= 0.5 * last)
        move = np.where(inside, move, 0.5 * (low + high) - k)
        k, last = np.where(going, k + move, k), np.abs(move)
        slope, curvature = rows.slopes(k)
        rise, bend = k * A0 + B0 + C * slope, A0 + C * curvature
        low, high = np.where(rise < 0.0, k, low), np.where(rise < 0.0, high, k)
    return k
