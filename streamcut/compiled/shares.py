"""Dual variables of rows in cuts as 16-bit codes, and the few sums that every dual ascent over rows needs."""

import numpy as np

from streamcut.compiler.jit import helper, inlined

MIXED = 1 << 31  # parts of a mixture are multiples of 1 / MIXED: then Σ part·q² is exact in 64 bits
_WHOLE = MIXED * 65535.0 * 65535.0
NEARLY = 1.0 - 1e-7  # a share of 1, up to the rounding of parts and merged codes


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
def mixed_share(codes, i, parts):
    """Σ_t parts[t]/MIXED · (share of codes[i, t]), in integers: exact, in any order."""
    total = np.uint64(0)
    for t in range(len(parts)):
        code = np.uint64(codes[i, t])
        total += parts[t] * (code * code)
    share = np.float64(total) / _WHOLE
    return 1.0 if share > NEARLY else share


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
