"""Steps along a line in the dual of the elastic net, where ½‖S(v, λ)‖² takes the place of ½‖v‖²."""

from __future__ import annotations

import numpy as np

from streamcut.compiled import thresholds

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
