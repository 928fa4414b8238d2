"""An unpenalised intercept: an interval that contains the optimal one, and the bounds of cuts over that interval.

A cut says F(w, b) ≥ ½‖w‖² + C̄(⟨a, w⟩ + a₀ b + c), a₀ being the pull of its rows. The bound of a mixture is its least value over
all w and b; for a₀ ≠ 0 that is −∞, and rounding alone keeps sums of shares from being 0. So the least value is taken over
b in [low, high], an interval that is proved to hold the optimum's b*: with half its width B and its middle m,

    F* ≥ C̄(c + a₀ m) − ½‖C̄ a‖² − B |C̄ a₀|.

Proof of the interval. F is 1-strongly convex in w, so ½‖w* − w_b‖² ≤ F(w_b) − F* for any point: with a bound D ≥ 0 on F*,
w* lies within r = √(2(F(w_b) − D)) of w_b. As ½‖w‖² + C̄(⟨a, w⟩ + a₀ b + c) ≤ F(w_b) at the optimum, a cut with a₀ > 0 gives, for
L = ‖w_b + C̄ a‖,

    C̄ a₀ b* ≤ F(w_b) − ½‖w_b‖² − C̄(⟨a, w_b⟩ + c) + max over 0 ≤ δ ≤ r of (L δ − ½δ²).

One with a₀ < 0 bounds b* from below. A shorter interval raises the bound, and a higher bound shortens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from streamcut.compiled import vectors
from streamcut.foundation.rounding import UNSEEN, CutError, dot_gamma, gamma

_LOOSE = 1e-9  # of the sum of sizes, far more than rounding


class Plane(Protocol):
    """A cut whose last number of `a` is a₀."""

    @property
    def a(self) -> np.ndarray: ...

    @property
    def b(self) -> float: ...

    @property
    def error(self) -> CutError: ...


class Interval(NamedTuple):
    """low ≤ b* ≤ high."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> float:
        """Upper bound on the distance of b* from the computed middle."""
        return 0.5 * (self.high - self.low) * (1.0 + 1e-15) + 1e-15 * self.largest

    @property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def within(self, other: Interval) -> Interval:
        """The intersection of both."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def settled(self, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        """What a cut that pulls on the intercept proves for any intercept in the interval: (b, error) without it."""
        middle, half = self.middle, self.half
        more = (error.slope + gamma(16.0) * abs(pull)) * (self.largest + half) + gamma(16.0) * abs(b)
        return b + (pull * middle - half * abs(pull)), CutError(error.slope, error.offset + more)


EVERYWHERE = Interval(-math.inf, math.inf)


def around(intercept: float) -> Interval:
    """The search interval around an intercept: early on a bundle's solution jumps far."""
    reach = max(1.0, abs(intercept))
    return Interval(intercept - reach, intercept + reach)


class Nearby:
    """The ball that contains the optimum, given F ≤ `primal` at the weights `near`, and F ≥ `bound` everywhere."""

    def __init__(self, c_bar: float, near: np.ndarray, primal: float, bound: float) -> None:
        self._c_bar, self._primal = c_bar, primal
        self._radius = math.sqrt(2.0 * max(0.0, primal - bound)) * (1.0 + _LOOSE) + _LOOSE * math.sqrt(primal) + UNSEEN
        self._square, self._doubt = vectors.dot(near, near), 4.0 * dot_gamma(len(near))
        self._size = math.sqrt(self._square * (1.0 + dot_gamma(len(near)))) + UNSEEN

    def farthest(self, pull: float, norm: float, across: float, b: float, error: CutError) -> float | None:
        """The largest t that a cut (a, b) allows, where intercept t counts as `pull` · t at the optimum, pull > 0; None: no
        bound. norm, across: ‖a‖² and ⟨a, near⟩.
        """
        c_bar, square, size, doubt, radius = self._c_bar, self._square, self._size, self._doubt, self._radius
        firm = (pull - error.slope) * (1.0 - _LOOSE)
        if firm <= 0.0:
            return None
        slope = c_bar * math.sqrt(norm * (1.0 + 0.25 * doubt))
        length = math.sqrt(max(0.0, square + 2.0 * c_bar * across + c_bar * c_bar * norm))
        length += (math.sqrt(doubt) + _LOOSE) * (size + slope) + c_bar * error.slope + UNSEEN
        most = 0.5 * length * length if length <= radius else length * radius - 0.5 * radius * radius
        parts = self._primal, -0.5 * square, -c_bar * across, -c_bar * b, most, c_bar * (error.offset + error.slope * size)
        reach = math.fsum(parts) + _LOOSE * math.fsum(map(abs, parts)) + (_LOOSE + doubt) * slope * size
        far = reach / (c_bar * (firm if reach >= 0.0 else (pull + error.slope) * (1.0 + _LOOSE)))
        return far + _LOOSE * abs(far)


def best_intercept(cuts: Iterable[Plane], c_bar: float, near: np.ndarray, primal: float, bound: float) -> Interval:
    """An interval for b*, from cuts whose last number is a₀; F ≤ `primal` at the weights `near`, and F ≥ `bound` everywhere.

    Ends not bounded by any cut are infinite.
    """
    low, high, ball = -math.inf, math.inf, Nearby(c_bar, near, primal, bound)
    for cut in cuts:
        a, pull = cut.a[:-1], float(cut.a[-1])
        far = ball.farthest(abs(pull), vectors.dot(a, a), vectors.dot(a, near), cut.b, cut.error)
        if far is None:
            continue
        if pull > 0.0:
            high = min(high, far)
        else:
            low = max(low, -far)
    return Interval(low, high)
