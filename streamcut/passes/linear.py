"""Scores of rows and sums of rows: the two kernels in which a linear solver spends its time.

Conventions: CSR arrays as in streamcut.chunk (`data` None when every value is 1); `w` and `out` sums are float64 of length
d, or d + 1 with the weight of the constant feature `bias` last when `bias` is not 0.
"""

import numpy as np

from streamcut.jit import kernel


@kernel
def scores(indptr, indices, data, w, bias, out):
    """out[i] = ⟨w, x_i⟩. Long rows get four partial sums (one would wait for every addition); short ones overlap anyway."""
    constant = bias * w[-1] if bias != 0.0 else 0.0
    start = indptr[0]
    for i in range(len(indptr) - 1):
        stop = indptr[i + 1]
        total = constant
        t = start
        if stop - start >= 32:
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for _ in range((stop - start) >> 2):
                if data is None:
                    s0 += w[np.uint64(indices[t])]
                    s1 += w[np.uint64(indices[t + 1])]
                    s2 += w[np.uint64(indices[t + 2])]
                    s3 += w[np.uint64(indices[t + 3])]
                else:
                    s0 += data[t] * w[np.uint64(indices[t])]
                    s1 += data[t + 1] * w[np.uint64(indices[t + 1])]
                    s2 += data[t + 2] * w[np.uint64(indices[t + 2])]
                    s3 += data[t + 3] * w[np.uint64(indices[t + 3])]
                t += 4
            total += (s0 + s1) + (s2 + s3)
        for rest in range(t, stop):
            if data is None:
                total += w[np.uint64(indices[rest])]
            else:
                total += data[rest] * w[np.uint64(indices[rest])]
        out[i] = total
        start = stop


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
        if data is None:
            c = (c + rounder) - rounder
            for t in range(indptr[i], indptr[i + 1]):
                out[np.uint64(indices[t])] += c
        else:
            for t in range(indptr[i], indptr[i + 1]):
                out[np.uint64(indices[t])] += (c * data[t] + rounder) - rounder


def exact_rounder(bound):
    """r such that (x + r) − r is x rounded to a multiple of q = 2⁻⁵¹·2^⌈log₂ bound⌉, and sums of such x are exact up to `bound`.

    `bound` is at least Σ|x| over all terms. Rounding moves a mean over rows by at most q/2, in practice by a √rows-th of it:
    the size of the rounding errors of an ordinary sum, but the same in every order (Demmel & Nguyen, 2013, one fold).
    """
    return 3.0 * 2.0 ** np.ceil(np.log2(bound)) if bound > 0.0 else 0.0
