"""Scores of rows and sums of rows: the two kernels in which a linear solver spends its time; and dual variables as 16-bit codes.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); `w` and `out` sums are float64 of
length d, or d + 1 with the weight of the constant feature `bias` last when `bias` is not 0.
"""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.compiler.jit import helper, inlined, kernel


@inlined
def share_of(code):
    """f = (q / 65535)²: exact at both bounds, fine near 0."""
    root = np.float64(code) / 65535.0
    return root * root


@inlined
def code_of(share):
    """The nearest code of a share."""
    return np.uint16(np.sqrt(share) * 65535.0 + 0.5)


@inlined
def rounded(value, rounder):
    """`value` on the grid of `rounder` (streamcut.foundation.rounding.exact_rounder)."""
    return (value + rounder) - rounder


@inlined
def left(value, kept, fine):
    """The remainder of `value` after `kept` on a coarse grid, on the grid of `fine`; 0 if there is no fine grid."""
    return ((value - kept) + fine) - fine if fine != 0.0 else 0.0


@helper
def square_of(indptr, data, bias, i):
    """‖xᵢ‖²."""
    square = bias * bias
    if data is None:
        return square + np.float64(indptr[i + 1] - indptr[i])
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        square += np.float64(data[p]) * np.float64(data[p])
    return square


# Positions are unsigned: for a signed one Numba also compiles the wrap-around of negative indices, which doubles the time.


@kernel
def scores(indptr, indices, data, w, bias, out):
    """out[i] = ⟨w, x_i⟩, added in the order of the features. Several partial sums per row were tried and are no faster."""
    constant = bias * w[-1] if bias != 0.0 else 0.0
    for i in range(len(indptr) - 1):
        total = constant
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += entry(data, t) * w[np.uint64(indices[t])]
        out[i] = total


@kernel
def scatter(indptr, indices, data, coefficients, bias, grids, out):
    """out (folds, D) += Σ_i coefficients[i] · x_i, in place, every term rounded to a grid (streamcut.foundation.rounding.Grids).

    Sums on a grid are exact, so neither the order of rows nor how they are split into calls, lanes and shards changes a bit.
    """
    coarse, fine, high, low = grids.vector, grids.fine_vector, out[0], out[-1]
    for i in range(len(indptr) - 1):
        c = coefficients[i]
        if c == 0.0:
            continue
        if bias != 0.0:
            kept = rounded(bias * c, coarse)
            high[-1] += kept
            if fine != 0.0:
                low[-1] += left(bias * c, kept, fine)
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            term = c * entry(data, t)
            kept = rounded(term, coarse)
            high[np.uint64(indices[t])] += kept
            if fine != 0.0:
                low[np.uint64(indices[t])] += left(term, kept, fine)


@kernel
def keep_largest(indptr, indices, data, bias, out):
    """out[j] = the largest of out[j] and all |x_ij|, in place."""
    for i in range(len(indptr) - 1):
        if bias != 0.0:
            out[-1] = max(out[-1], abs(bias))
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = abs(entry(data, t))
            out[np.uint64(indices[t])] = max(out[np.uint64(indices[t])], value)


@kernel
def add_magnitudes(indptr, indices, data, u, bias, rounder, out):
    """out (D) += Σ_i u_i |x_i|, in place, every term rounded to the grid of `rounder`; u None: all 1."""
    for i in range(len(indptr) - 1):
        weight = 1.0 if u is None else u[i]
        if bias != 0.0:
            out[-1] += (weight * abs(bias) + rounder) - rounder
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = abs(entry(data, t))
            out[np.uint64(indices[t])] += (weight * value + rounder) - rounder
