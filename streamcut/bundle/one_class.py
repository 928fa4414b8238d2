"""The dual of one class: shares that add up to νm, and the value of a plane's distance from the origin.

Schölkopf's problem (Schölkopf et al. 2001) is min ½‖w‖² − ρ + (1/νm) Σ max(0, ρ − s_i): rows on one side of a plane as far from
the origin as possible, except a fraction ν. With the best ρ for each w, a ν-quantile of the scores, that is ½‖w‖² minus the mean
of the νm lowest (the last of these counting in part if νm is not an integer). Along each direction the mean is linear in the
length of w, so only a direction is sought, and the F that is reported,

    min ½‖w‖² + C̄ R(w),  R(w) = max(0, 1 − mean of the νm lowest scores),

has the same one for every C̄; for C̄ large enough the mean is 1 at the optimum, and the least F is 1 / (2r²) for a largest mean r
at ‖w‖ = 1. With the offset ρ = 1 − b as an intercept with the linear cost C̄ b it is solved as

    F(w, b) = ½‖w‖² + C̄ (b + (1/νm) Σ max(0, 1 − s_i − b)),    least: C̄ − ½C̄² R² for a distance R of the best plane,

a loss of single rows with a free intercept, whose pull is reduced by ν: a cut of shares f of the mean hinge has a₀ = ν − mean f.
So long as C̄R² < 1 that is also the F that is reported, whose risk R is never below 0. C̄ = 1/(2‖mean x‖²) is so small,
as equal shares show: R ≤ ‖mean x‖.

A mixture whose shares do not add up to νm is mixed further, with the cut where all shares are 1 or that where all are 0,
until they do. Then its bound needs no interval of b, and it is a cut of the risk without b, for every C̄.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.bundle.intercept import Interval, Plane
from streamcut.bundle.penalty import L2, FreeIntercept
from streamcut.compiled import vectors
from streamcut.foundation.rounding import UNSEEN, CutError, above, combined, dot_gamma, gamma, objective

_LONGER = 200.0  # factor on C̄ of the reported F: ½/R² for all R above a tenth of ‖mean x‖
_ROUNDINGS = 16.0


@dataclass(frozen=True, slots=True, eq=False)
class FreeOffset(FreeIntercept):
    """½‖w‖² + C̄ b, b the last of the weights times `constant`.

    ones   the cut with all shares 1; its last number is constant (ν − 1)
    nu     ν
    price  C̄
    """

    ones: Plane | None = None
    nu: float = 1.0
    constant: float = 1.0
    price: float = 0.0
    partial: ClassVar[bool] = False
    centred: ClassVar[bool] = False

    @classmethod
    def of(cls, ones: Plane, nu: float, constant: float, price: float, longest: float) -> FreeOffset:
        """The penalty for rows up to `longest`: 0 ≤ ρ ≤ max⟨w, x⟩, ‖w‖ ≤ C̄‖mean x‖."""
        size = math.sqrt(vectors.dot(ones.a[:-1], ones.a[:-1]))
        within = Interval((1.0 - longest * size * price) / constant, 1.0 / constant)
        return cls(within=within, ones=ones, nu=nu, constant=constant, price=price)

    def near(self, w_b: np.ndarray) -> None:
        return None

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> FreeOffset:
        return self

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        costs = self.price * (self.constant * float(w[-1]))
        half = objective(vectors.dot(w[:-1], w[:-1]), len(w), C, loss)
        return above(half + costs, gamma(_ROUNDINGS) * (half + abs(costs)))

    def line(self, w_b: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        square, slope = L2.line(self, w_b[:-1], w[:-1])
        return square, slope + self.price * self.constant * float(w[-1] - w_b[-1])

    def feasible(self, a: np.ndarray, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        """(b, error) of a cut whose shares add up to νm, and `a` (D,) changed to that cut, for a cut with this `pull` on b."""
        assert self.ones is not None
        ones, all_up, all_down = self.ones, self.constant * (1.0 - self.nu), self.constant * self.nu
        doubt = error.slope + gamma(_ROUNDINGS) * self.constant
        a_ones, b_ones, of_ones = ones.a[:-1], ones.b, ones.error
        if all_up <= doubt:  # only shares of 1 add up to νm, to all digits
            kept = self.nu
            a[:] = kept * a_ones
            return kept * b_ones, combined(kept, of_ones, 0.0, of_ones, _length(a_ones), abs(b_ones))
        length, size = _length(a), abs(b)
        if pull > 0.0:
            kept = all_up / (all_up + pull)
            a *= kept
            a += (1.0 - kept) * a_ones
            length, size, b = kept * length + (1.0 - kept) * _length(a_ones), size + abs(b_ones), kept * b + (1.0 - kept) * b_ones
            error = combined(kept, error, 1.0 - kept, of_ones, length, size)
        elif pull < 0.0:
            kept = all_down / (all_down - pull)
            a *= kept
            b *= kept
        off = doubt / min(all_up, all_down)  # upper bound on the error of the parts
        length, size = 2.0 * (length + _length(a_ones)), 2.0 * (size + abs(b_ones))
        return b, CutError(error.slope + (off + gamma(_ROUNDINGS)) * length, error.offset + (off + gamma(_ROUNDINGS)) * size)

    def claim(self, w: np.ndarray, F: float, bound: float) -> tuple[float, float]:
        """In terms of the F that is reported: it minimised over multiples of w, and its lower bound; both approximate."""
        square = vectors.dot(w[:-1], w[:-1])
        lowest = (self.price + 0.5 * square - F) / self.price  # ≤ the mean of the νm lowest scores
        reached = lowest * lowest / square if lowest > 0.0 and square > 0.0 else 0.0
        return self.least(reached), self.least(2.0 * (self.price - bound) / self.price**2)

    @property
    def c_bar(self) -> float:
        """C̄ of the reported F: at least half of 1/R² where R > ‖mean x‖ / 10, for any price, and finite for R = 0."""
        return _LONGER * self.price

    def least(self, square: float) -> float:
        """The least F, for c_bar, of planes at squared distance `square`."""
        return 0.5 / square if self.c_bar * square >= 1.0 else self.c_bar - 0.5 * self.c_bar**2 * square

    def factor(self, w: np.ndarray, F: float) -> float:
        """The factor of w that minimises F for c_bar."""
        square = vectors.dot(w[:-1], w[:-1])
        lowest = (self.price + 0.5 * square - F) / self.price
        return min(1.0 / lowest, self.c_bar * lowest / square) if lowest > 0.0 and square > 0.0 else 0.0


def without_offset(a: np.ndarray, b: float, error: CutError, nu: float, c_bar: float) -> tuple[np.ndarray, float, CutError]:
    """The cut of the risk R(w) from a feasible one, scaled down to the best bound for C̄ = `c_bar`."""
    a, b, error = a / nu, b / nu, CutError(error.slope / nu, error.offset / nu)
    square = vectors.dot(a, a)
    part = min(1.0, b / (c_bar * square)) if square > 0.0 else 1.0
    rounding = gamma(_ROUNDINGS)
    slope, offset = error.slope + rounding * (_length(a) + error.slope), error.offset + rounding * (abs(b) + error.offset)
    return a * part, b * part, CutError(part * slope + UNSEEN, part * offset + UNSEEN)


def _length(a: np.ndarray) -> float:
    return math.sqrt(vectors.dot(a, a) * (1.0 + dot_gamma(len(a)))) + UNSEEN
