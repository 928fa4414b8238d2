"""Water levels by sorting: pour until the next number is reached, one number at a time."""

from __future__ import annotations

import numpy as np


def level(c, volume: float) -> tuple[float, int]:
    """(γ, numbers covered): Σ max(0, γ − c_i) = volume."""
    c = np.sort(c)
    k, surface = 1, c[0]
    while k < len(c) and volume > k * (c[k] - surface):
        volume -= k * (c[k] - surface)
        surface = c[k]
        k += 1
    return surface + volume / k, k


def level_with_bias(positive, negative, volume: float) -> float:
    """γ = max over b of the common level of positive + b and negative − b: the k-th smallest of both go together."""
    n = min(len(positive), len(negative))
    pairs = np.sort(positive)[:n] + np.sort(negative)[:n]
    return level(pairs, volume)[0] / 2
