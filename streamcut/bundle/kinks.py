"""Line searches with λ‖w‖₁, which has a kink wherever a weight becomes 0 along the line.

F′(k) = k A₀ + B₀ + λ-part(k) + C·(slope of the rows), where the λ-part is a constant that jumps up at the kinks. They are
known without reading a row. For piecewise linear losses they are breakpoints like those of rows (`KinkedLoss`); smooth ones get
Newton's method on the rows' part alone, the rest is solved exactly (`minimise_with_kinks`). Both also for several problems.
`longest_step` is the same in the dual, where ½‖S(v, λ)‖² takes the place of ½‖v‖².
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cached_property

import numpy as np

from streamcut.bundle.line_search import LossAlongLine
from streamcut.compiled import thresholds

_SMALL = 1e-13
_ROUNDING = 1e-15  # of the parts of F′, which nearly cancel at the minimum
_MOST_STEPS = 60
_CLOSER = 0.125  # of the bracket: the next point if F is not finite


class Kinks:
    """The kinks of λ‖w_b + kΔ‖₁ for k > 0, and its slope between them."""

    def __init__(self, w_b: np.ndarray, delta: np.ndarray, l1: float) -> None:
        self._of = w_b, delta, l1
        self.slope_at_zero: float = thresholds.kinks(w_b, delta, l1, 0.0, None, None)[1]

    def up_to(self, high: float) -> tuple[np.ndarray, np.ndarray]:
        """(k, jump) of the kinks at 0 < k ≤ high, k increasing."""
        count, _ = thresholds.kinks(*self._of, high, None, None)
        places, jumps = np.empty(count), np.empty(count)
        thresholds.kinks(*self._of, high, places, jumps)
        order = np.argsort(places, kind="stable")
        return places[order], jumps[order]


class KinkedLoss:
    """A piecewise linear loss along a line with the kinks of weights among its breakpoints: a LossAlongLine, divided by C."""

    def __init__(self, rows: LossAlongLine, kinks: Kinks, C: float) -> None:
        self._rows, self._kinks, self._C = rows, kinks, C

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        places, jumps = self._kinks.up_to(np.inf)
        return places, jumps / self._C

    def slope_at_zero(self) -> float:
        return self._rows.slope_at_zero() + self._kinks.slope_at_zero / self._C

    def histogram(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        jumps, counts = self._rows.histogram(edges)
        places, own = self._sorted
        first, last = np.searchsorted(places, edges[[0, -1]])
        which = np.searchsorted(edges, places[first:last], side="right") - 1
        jumps = jumps + np.bincount(which, own[first:last], len(jumps))
        return jumps, counts + np.bincount(which, minlength=len(counts))

    def breakpoints(self, low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        places, own = self._sorted
        first, last = np.searchsorted(places, (low, high))
        k, jump = self._rows.breakpoints(low, high, count - int(last - first))
        return np.concatenate([k, places[first:last]]), np.concatenate([jump, own[first:last]])


def minimise_with_kinks(A0: float, B0: float, C: float, slopes: Callable[[float], tuple[float, float]], kinks: Kinks) -> float:
    """The k ≥ 0 that minimises F along the line, for smooth losses; 0 when F does not decrease from w_b.

    A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩, C the factor of the rows' losses; `slopes(k)` gives their (slope, curvature) at k.
    """
    search = _search(A0, B0, C, kinks)
    k = next(search)
    while True:
        try:
            k = search.send(slopes(k))
        except StopIteration as end:
            return float(end.value)


def _search(A0: float, B0: float, C: float, kinks: Kinks) -> Generator[float, tuple[float, float], float]:
    """Requests (slope, curvature) at one k after another, and returns the k that minimises F.

    repeat
        next k: where the rows' slope linearised at k, the kinks and the parabola give F′ = 0
        if it leaves the bracket, or moves more than half as far as the last step: the midpoint
    until it stays, exactly so at a kink

    Where exponentials overflow, F rises too steeply: the next point is much closer to where it still falls.
    """
    slope, curvature = yield 0.0
    rise = B0 + kinks.slope_at_zero + C * slope
    if not rise < 0.0 or A0 <= 0.0:
        return 0.0
    low, high = 0.0, np.nextafter(-rise / A0, np.inf)
    places, jumps = kinks.up_to(high)
    after = kinks.slope_at_zero + np.concatenate([[0.0], np.cumsum(jumps)])  # the λ-part between kinks
    k, last = 0.0, np.inf
    for _ in range(_MOST_STEPS):
        target = _root(A0 + C * curvature, B0 + C * (slope - curvature * k), places, after, high)
        if abs(target - k) <= _SMALL * k:
            break
        move = target - k
        if not low < target <= high or abs(move) > 0.5 * last:
            move = 0.5 * (low + high) - k
        k, last = k + move, abs(move)
        slope, curvature = yield k
        while not np.isfinite(k * A0 + B0 + C * slope) or not np.isfinite(A0 + C * curvature):
            high = k
            if not low < (k := low + _CLOSER * (high - low)) < high:
                return low
            last = k - low
            slope, curvature = yield k
        smooth = k * A0 + B0 + C * slope
        before, behind = (float(after[np.searchsorted(places, k, side=side)]) for side in ("left", "right"))
        rounding = _ROUNDING * max(abs(B0), abs(C * slope), k * A0, abs(before), abs(behind))
        if smooth + before <= rounding and smooth + behind >= -rounding:
            break
        low, high = (k, high) if smooth + behind < 0.0 else (low, k)
    return k


def _root(bend: float, rise: float, places: np.ndarray, after: np.ndarray, high: float) -> float:
    """The k ≤ `high` where k·bend + rise + (the λ-part at k) changes sign, bend > 0."""
    below = np.searchsorted(places * bend + rise + after[1:] >= 0.0, True)  # increasing: kinks left of the root
    if below < len(places) and places[below] * bend + rise + after[below] <= 0.0:
        return float(places[below])
    return min(max(-(rise + float(after[below])) / bend, 0.0), high)


_ROOT_STEPS = 60
_ROOT_PART = 1e-9


def longest_step(v: np.ndarray, delta: np.ndarray, gain: float, l1: float, low: float = 0.0) -> float:
    """The θ ∈ [low, 1] that maximises θ·gain − ½‖S(v + θδ, λ)‖², which still rises at `low`.

    Its derivative falls and is piecewise linear: Newton's method with a bracket.
    """
    high, theta = 1.0, 1.0
    for _ in range(_ROOT_STEPS):
        slope, curvature = thresholds.slope_along(v, delta, l1, theta)
        rise = gain - slope
        if rise >= 0.0:
            low = theta
        else:
            high = theta
        if low == 1.0 or high - low <= _ROOT_PART * high:
            break
        after = theta + rise / curvature if curvature > 0.0 else 0.5 * (low + high)
        if abs(after - theta) <= _ROOT_PART * theta:
            break
        theta = after if low < after < high else 0.5 * (low + high)
    return theta
