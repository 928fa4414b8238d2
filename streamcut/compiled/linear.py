"""Scores of rows and sums of rows: the two kernels in which a linear solver spends its time.

Conventions: CSR arrays as in streamcut.chunk (`data` None when every value is 1); `w` and `out` sums are float64 of length
d, or d + 1 with the weight of the constant feature `bias` last when `bias` is not 0.
"""

import numpy as np

from streamcut.jit import kernel

# Positions are unsigned: for a signed one Numba also compiles the wrap-around of negative indices, which doubles the time.


@kernel
def scores(indptr, indices, data, w, bias, out):
    """out[i] = ⟨w, x_i⟩, added in the order of the features. Several partial sums a row were tried and are no faster."""
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
def scatter(indptr, indices, data, coefficients, bias, rounder, out):
    """out += Σ_i coefficients[i] · x_i, in place, every term rounded to the grid of `rounder` (see `exact_rounder`).

    Sums on a grid are exact, so neither the order of rows nor how they are split into calls, lanes and shards changes a bit.
    """
    for i in range(len(indptr) - 1):
        c = coefficients[i]
        if c == 0.0:
            continue
        if bias != 0.0:
            out[-1] += (bias * c + rounder) - rounder
        rounded = (c + rounder) - rounder
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if data is None:
                out[np.uint64(indices[t])] += rounded
            else:
                out[np.uint64(indices[t])] += (c * data[t] + rounder) - rounder


def exact_rounder(bound):
    """r such that (x + r) − r is x rounded to a multiple of q = 2⁻⁵¹·2^⌈log₂ bound⌉, and sums of such x are exact up to `bound`.

    `bound` is at least Σ|x| over all terms. Rounding moves a mean over rows by at most q/2, in practice by a √rows-th of it:
    the size of the rounding errors of an ordinary sum, but the same in every order (Demmel & Nguyen, 2013, one fold).
    """
    return 3.0 * 2.0 ** np.ceil(np.log2(bound)) if bound > 0.0 else 0.0
