"""Bounds on scores of the exact optimum without curvature: by balls round the weights, and a free intercept's interval."""

from __future__ import annotations

import math

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma
from streamcut.io.dataset import Dataset
from streamcut.locating.intercept import distances, reach
from streamcut.locating.problem import Located
from streamcut.locating.regions import Ball, doubt
from streamcut.locating.sums import Slope, lengths, magnitudes, row_gamma, scores

_ROUNDS = 6  # of narrowing a free intercept, a pass each
_SETTLED = 0.1


class Nearby:
    """Bounds on scores at v* from balls that contain w*, and the interval of a free intercept.

    ‖w_b − w*‖ ≤ root = √(2G). For the slope g of F, ‖Δ‖² ≤ ⟨g, Δ⟩ + g_b Δb, Δ = w_b − w*: within √(¼‖g‖² + |g_b Δb|) of ½g, too.
    With a free intercept, rows are centred: b is b + ⟨w, c⟩ then, and g is the slope at a fixed b, which is g − g_b c.
    """

    def __init__(self, problem: Located, at: Slope, root: float, shift: tuple[float, float] = (math.inf, math.inf)) -> None:
        self._problem, self._root = problem, root
        self._center = np.zeros(len(problem.at))
        self._below, self._above = shift if problem.free and math.isfinite(sum(shift)) else (0.0, 0.0)
        self._ball = Ball(problem.model)
        self._balls: list[
            tuple[np.ndarray, np.ndarray, float]
        ] = []  # (step, numbers that it is made of, radius): round w_b − step
        if problem.free:
            self._center = at.center
            if self._ball.dual is not None:
                dual = np.append(self._ball.dual, 0.0)
                ends = np.append(problem.at[:-1], 0.0)
                self._balls.append((0.5 * (ends - dual), np.abs(ends) + np.abs(dual), self._ball.middle))
        if problem.model.l1 == 0.0 and (not problem.free or math.isfinite(sum(shift))):
            self._balls.append(self._by_slope(at, max(shift)))

    def _by_slope(self, at: Slope, shift: float) -> tuple[np.ndarray, np.ndarray, float]:
        """The ball round w_b − ½g. `shift` is how far a free intercept of centred rows may be from its optimum."""
        gradient, error, pull = at.gradient.copy(), at.error.copy(), 0.0
        own = 1.0 + gamma(len(gradient) + 8.0)
        if self._problem.free:
            slope, off, center = float(gradient[-1]), float(error[-1]), self._center
            error += (off + gamma(4.0) * abs(slope)) * np.abs(center) + gamma(4.0) * np.abs(gradient)
            gradient -= slope * center
            gradient[-1] = error[-1] = 0.0
            pull = (abs(slope) + off) * shift * own
        step, size, off = 0.5 * gradient, *(float(np.linalg.norm(each)) * own for each in (gradient, error))
        return step, np.abs(step), math.sqrt(0.25 * size * size + size * off + off * off + pull) * own + off

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.planes(chunk, found)
        off = doubt(chunk, np.abs(self._problem.at), self._problem.bias)
        return np.nextafter(low - self._below - off, -np.inf), np.nextafter(high + self._above + off, np.inf)

    def planes(self, chunk: Chunk, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same with the intercept of centred rows as the model has it."""
        problem, center = self._problem, self._center
        bias = 0.0 if problem.free else problem.bias
        length = distances(chunk, center) if problem.free else lengths(chunk, bias)
        low, high = s - self._root * length, s + self._root * length
        for step, sizes, radius in self._balls:
            middle = s - (scores(chunk, step, bias) - float(step @ center))
            near = radius * length + gamma(4.0) * np.abs(s)
            own = 2.0 * (row_gamma(chunk) + gamma(len(step)))
            near += own * (magnitudes(chunk, sizes, bias) + float(sizes @ np.abs(center)))
            low, high = np.maximum(low, middle - near), np.minimum(high, middle + near)
        if not problem.free:
            least, greatest = self._ball.within(chunk, s)
            low, high = np.maximum(low, least), np.minimum(high, greatest)
        return low, high


def nearby(problem: Located, data: Dataset, at: Slope, gap: float) -> tuple[Nearby | None, int]:
    """(what follows from `at` and the gap, or None if a free intercept is not bounded; the passes it took).

    The intercept's interval makes the ball smaller, which in turn narrows the interval.
    """
    root = math.sqrt(2.0 * gap) * (1.0 + gamma(8.0))
    found = Nearby(problem, at, root)
    if not problem.free:
        return found, 0
    last = math.inf
    for passes in range(1, _ROUNDS + 1):
        shift = reach(problem, data, found.planes)
        if shift is None:
            return None, passes
        found = Nearby(problem, at, root, shift)
        if problem.model.l1 != 0.0 or sum(shift) > (1.0 - _SETTLED) * last:
            break
        last = sum(shift)
    return found, passes
