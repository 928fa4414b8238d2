"""Line searches of many columns at once, by slopes alone: any convex F, smooth or not (Illinois variant of regula falsi)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_FLAT = 1e-3  # of the slope at k = 0: what is left of it where a search ends
_NARROW = 1e-3  # of k: a bracket around a kink
_FAR = 2.0**20
_MOST = 40  # slopes that a search asks for


def minimise(slopes: Callable[[np.ndarray], np.ndarray], columns: int) -> np.ndarray:
    """k ≥ 0 (columns,) where each F is nearly least along its line; slopes(k) are right derivatives at k (columns,)."""
    low, k = np.zeros(columns), np.zeros(columns)
    at_low = slopes(k)
    falls = at_low < 0.0
    flat = _FLAT * -at_low
    high, at_high = np.ones(columns), np.zeros(columns)
    open_ = falls.copy()
    if not open_.any():
        return k
    while open_.any() and high.max() < _FAR:
        found = slopes(np.where(falls, high, 0.0))
        at_high = np.where(open_, found, at_high)
        on = open_ & (found < 0.0)
        low, at_low = np.where(on, high, low), np.where(on, found, at_low)
        high, open_ = np.where(on, 2.0 * high, high), on
    k = np.where(falls, np.where(at_high <= flat, high, low), 0.0)
    todo = falls & (at_high > flat) & (at_low < -flat)
    for _ in range(_MOST):
        if not todo.any():
            break
        with np.errstate(invalid="ignore"):
            secant = (low * at_high - high * at_low) / np.where(todo, at_high - at_low, 1.0)
        between = np.where(todo, np.where(np.isfinite(at_high), secant, 0.5 * (low + high)), k)
        found = slopes(between)
        k = np.where(todo, between, k)
        left, right = todo & (found < 0.0), todo & ~(found < 0.0)
        low, at_low, at_high = np.where(left, between, low), np.where(left, found, at_low), np.where(left, 0.5 * at_high, at_high)
        high, at_high, at_low = (
            np.where(right, between, high), np.where(right, found, at_high), np.where(right, 0.5 * at_low, at_low),
        )  # fmt: skip
        todo &= (np.abs(found) > flat) & (high - low > _NARROW * high)
    return k
