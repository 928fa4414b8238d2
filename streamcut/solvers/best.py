"""The best point of a method, which it returns regardless of its last step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

RISK = 0.01  # of the gap: if rounding in a step may add more than that to F, the point before it is kept


@dataclass(slots=True)
class Best:
    """w with F(w) ≤ F, `raised` of it for rounding. Starts with w = 0, and accepts only lower, finite values.

    `w` may be the very array that a method moves: then it moves along, as long as rounding cannot matter.
    """

    w: np.ndarray
    F: float
    raised: float

    def before(self, moving: np.ndarray, doubt: float, gap: float) -> None:
        """Before `moving` takes a step whose rounding may add `doubt` to F: keep a copy, if that matters."""
        if self.w is moving and not doubt <= RISK * gap:
            self.w = moving.copy()

    def offer(self, w: np.ndarray, F: float, raised: float) -> bool:
        """Accept w if it is better, or if it is the array `w` itself; returns whether it did."""
        taken = F < self.F or (w is self.w and math.isfinite(F))
        if taken:
            self.w, self.F, self.raised = w, F, raised
        return taken
