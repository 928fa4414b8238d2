"""½‖w‖² where the last number of w is an unpenalised intercept (streamcut.bundle.intercept)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE, Interval, Plane, around, best_intercept
from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.foundation.rounding import CutError, objective

VECTORS = 4  # of w's length, in addition to those of L2: two cuts that bound the intercept, and their sums


@dataclass(frozen=True, slots=True, eq=False)
class FreeIntercept(L2):
    """halves   cuts of the rows that pull the intercept either way, for any weights: they bound it
    within   where the optimal intercept is proved to be
    """

    halves: tuple[Plane, ...] = ()
    within: Interval = EVERYWHERE  # type: ignore[misc]
    free: ClassVar[bool] = True
    priced: ClassVar[bool] = True
    proximal: ClassVar[bool] = True

    def known(self, *within: float) -> Self:
        """With (low, high), or nothing, as the proved interval. Raises ValueError for other numbers."""
        if within and not (len(within) == 2 and -math.inf < within[0] <= within[1] < math.inf):
            raise ValueError(f"its intercept is within {within}")
        return replace(self, within=Interval(*within) if within else EVERYWHERE)

    def value(self, w: np.ndarray) -> float:
        return L2.value(self, w[:-1])

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        return objective(vectors.dot(w[:-1], w[:-1]), len(w), C, loss)

    def line(self, w_b: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        return L2.line(self, w_b[:-1], w[:-1])

    def longest(self, F: float) -> float:
        return L2.longest(self, F) + (self.within.largest if self.within.known else 0.0)

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> Self:
        return replace(self, within=self.within.within(best_intercept(self.halves, c_bar, w_b[:-1], F_b, bound)))

    def near(self, w_b: np.ndarray) -> Interval | None:
        """The search interval of the next intercept; None: all of `within`."""
        return around(float(w_b[-1]))

    def settled(self, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        return self.within.settled(b, error, pull)
