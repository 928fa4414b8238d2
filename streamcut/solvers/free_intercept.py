"""A free intercept of a kernel machine: its constraint Σ y_i α_i = 0, and its best value for given scores."""

from __future__ import annotations

import math

import numpy as np

from streamcut.foundation.rounding import gamma


def balance(alpha: np.ndarray, signs: np.ndarray, upper: np.ndarray) -> None:
    """Move α, in place, by the deviation of Σ y_i α_i from 0, so that the sum is exactly 0: only then is the dual value a bound.

    The error goes to the row with the smallest α that can take it, where rounding is finest. If none can, because all are so
    much larger, the smallest α becomes 0: the others are multiples of a larger unit, and so is the error then.
    """
    while (off := math.fsum(alpha * signs)) != 0.0:
        after = alpha - signs * off
        room = (after >= 0.0) & (after <= upper) & (after != alpha)
        if room.any():
            row = np.flatnonzero(room)[np.argmin(alpha[room])]
            alpha[row] = after[row]
        else:
            alpha[alpha == alpha[alpha > 0.0].min()] = 0.0


def best_intercept(signs: np.ndarray, upper: np.ndarray, responses: np.ndarray) -> float:
    """The b with the least Σ C_i max(0, 1 − c_i − y_i b): convex, piecewise linear, its slope jumps by C_i at y_i (1 − c_i).

    If an interval of them has the least, its middle, as in LIBSVM. That is where the slope is 0, up to rounding of the sums.
    """
    candidates = signs * (1.0 - responses)
    order = np.argsort(candidates, kind="stable")
    slopes = np.cumsum(upper[order]) - upper[signs > 0].sum()
    nothing = gamma(len(slopes)) * upper.sum()
    first, end = np.searchsorted(slopes, (-nothing, nothing), side="left")
    ends = np.minimum((first, end), len(order) - 1)
    return float(candidates[order[ends]].mean())
