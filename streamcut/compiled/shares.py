"""Shares of rows in cuts as 16-bit codes, and the few sums that all ascent over rows of several classes needs."""

import numpy as np

from streamcut.jit import inlined, kernel

ONE = 65535  # the code of share 1


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
    """`value` on the grid of `rounder` (streamcut.rounding.exact_rounder)."""
    return (value + rounder) - rounder


@inlined
def left(value, kept, fine):
    """What is left of `value` when `kept` of it is on a coarse grid, on the grid of `fine`; 0 if there is none."""
    return ((value - kept) + fine) - fine if fine != 0.0 else 0.0


@kernel
def square_of(indptr, data, bias, i):
    """‖xᵢ‖²."""
    square = bias * bias
    if data is None:
        return square + np.float64(indptr[i + 1] - indptr[i])
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        square += np.float64(data[p]) * np.float64(data[p])
    return square
