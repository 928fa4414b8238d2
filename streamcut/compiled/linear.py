"""Scores of rows and sums of rows: the two kernels in which a linear solver spends its time.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); `w` and `out` sums are float64 of
length d, or d + 1 with the weight of the constant feature `bias` last when `bias` is not 0.
"""

import numpy as np

from streamcut.compiler.jit import helper, kernel

# Positions are unsigned: for a signed one Numba also compiles the wrap-around of negative indices, which doubles the time.


@kernel
def scores(indptr, indices, data, w, bias, out):
    """out[i] = ⟨w, x_i⟩, added in the order of the features. Several partial sums per row were tried and are no faster."""
    constant = bias * w[-1] if bias != 0.0 else 0.0
    for i in range(len(indptr) - 1):
        total = constant
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if data is None:
                total += w[np.uint64(indices[t])]
            else:
                total += data[t] * w[np.uint64(indices[t])]
        out[i] = total


@kernel
def scatter(indptr, indices, data, coefficients, bias, grids, out):
    """out (folds, D) += Σ_i coefficients[i] · x_i, in place, every term rounded to a grid (streamcut.foundation.rounding.Grids).

    Sums on a grid are exact, so neither the order of rows nor how they are split into calls, lanes and shards changes a bit.
    """
    rounder, high = grids.vector, out[0]
    for i in range(len(indptr) - 1):
        c = coefficients[i]
        if c == 0.0:
            continue
        if grids.fine_vector != 0.0:
            _scatter_finely(indptr, indices, data, i, c, bias, grids, out)
            continue
        if bias != 0.0:
            high[-1] += (bias * c + rounder) - rounder
        rounded = (c + rounder) - rounder
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if data is None:
                high[np.uint64(indices[t])] += rounded
            else:
                high[np.uint64(indices[t])] += (c * data[t] + rounder) - rounder


@helper
def _scatter_finely(indptr, indices, data, i, c, bias, grids, out):
    """out[0] += c·x_i on the coarse grid, out[1] += the remainder on the fine one."""
    coarse, fine, high, low = grids.vector, grids.fine_vector, out[0], out[1]
    if bias != 0.0:
        term = c * bias
        kept = (term + coarse) - coarse
        high[-1] += kept
        low[-1] += ((term - kept) + fine) - fine
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        term = c if data is None else c * np.float64(data[t])
        kept = (term + coarse) - coarse
        high[np.uint64(indices[t])] += kept
        low[np.uint64(indices[t])] += ((term - kept) + fine) - fine


@kernel
def keep_largest(indptr, indices, data, bias, out):
    """out[j] = the largest of out[j] and all |x_ij|, in place."""
    for i in range(len(indptr) - 1):
        if bias != 0.0:
            out[-1] = max(out[-1], abs(bias))
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = 1.0 if data is None else abs(np.float64(data[t]))
            out[np.uint64(indices[t])] = max(out[np.uint64(indices[t])], value)


@kernel
def add_magnitudes(indptr, indices, data, u, bias, rounder, out):
    """out (D) += Σ_i u_i |x_i|, in place, every term rounded to the grid of `rounder`; u None: all 1."""
    for i in range(len(indptr) - 1):
        weight = 1.0 if u is None else u[i]
        if bias != 0.0:
            out[-1] += (weight * abs(bias) + rounder) - rounder
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = 1.0 if data is None else abs(np.float64(data[t]))
            out[np.uint64(indices[t])] += (weight * value + rounder) - rounder
