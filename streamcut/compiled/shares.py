"""Dual variables of rows as 16-bit codes, and the few sums that dual ascent over rows needs."""

import numpy as np

from streamcut.compiler.jit import helper, inlined


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


@helper
def square_of(indptr, data, bias, i):
    """‖xᵢ‖²."""
    square = bias * bias
    if data is None:
        return square + np.float64(indptr[i + 1] - indptr[i])
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        square += np.float64(data[p]) * np.float64(data[p])
    return square
