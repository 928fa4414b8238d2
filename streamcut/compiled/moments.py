"""Sums over the values of rows that come in blocks, with the same bits for any split into blocks."""

import numpy as np

from streamcut.compiler.jit import kernel


@kernel
def add_moments(values, sums):
    """sums[0] += Σ v, sums[1] += Σ v², one after the other."""
    total, square = sums[0], sums[1]
    for t in range(len(values)):
        value = np.float64(values[t])
        total += value
        square += value * value
    sums[0], sums[1] = total, square


@kernel
def add_weighted_moments(values, weights, sums):
    """sums[0] += Σ u v, sums[1] += Σ u v², one after the other; values of weight 0 are skipped."""
    total, square = sums[0], sums[1]
    for t in range(len(values)):
        if weights[t] > 0.0:
            value = np.float64(values[t])
            total += weights[t] * value
            square += weights[t] * (value * value)
    sums[0], sums[1] = total, square
