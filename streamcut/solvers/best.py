"""The best point that a method was at: what it returns, whatever its steps end in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamcut.bundle.shelf import Shelf

RISK = 0.01  # of the gap: where rounding may add more than that to F by a step, the point before it is kept


@dataclass(slots=True)
class Best:
    """w with F(w) ≤ F, of which `raised` is for rounding. It begins with w = 0, and takes only what is lower, and finite.

    `w` may be the very array that a method moves: then it goes along with it, as long as rounding cannot matter.
    """

    w: np.ndarray
    F: float
    raised: float

    def before(self, moving: np.ndarray, doubt: float, gap: float, shelf: Shelf) -> None:
        """`moving` takes a step by which rounding may add `doubt` to F: keep what is there, if that matters."""
        if self.w is moving and not doubt <= RISK * gap:
            self.w = shelf.zeros(len(moving))
            self.w[:] = moving
            shelf.release()

    def offer(self, w: np.ndarray, F: float, raised: float) -> bool:
        """Take w, if it is better, or where it is what `w` is; returns whether it did."""
        taken = F < self.F or (w is self.w and math.isfinite(F))
        if taken:
            self.w, self.F, self.raised = w, F, raised
        return taken
