"""Ranges of row scores: order statistics by the bits that order float64, and the scores between two bounds.

`codes` are class numbers, 0 … C − 1, of labels among C known ones (OneGroupRisk.encode); arrays of counts have one row more than
there are splitters, and a column for each class.
"""

import numpy as np

from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import kernel

DIGIT = 11  # bits; the top digit has the remaining 9


@kernel
def between(z_b, z, k, out):
    """out = z_b + k (z − z_b)."""
    for i in range(len(z)):
        out[i] = z_b[i] + k * (z[i] - z_b[i])


@kernel
def slope(coefficients, z_b, z, sums):
    """sums (total, rounding lost) += Σ coefficients_i (z_i − z_b,i)."""
    total, lost = sums[0], sums[1]
    for i in range(len(z)):
        total, lost = compensated(total, lost, coefficients[i] * (z[i] - z_b[i]))
    sums[0], sums[1] = total, lost


@kernel
def weigh(coefficients, factor, scores, middle, sums):
    """coefficients *= factor, in place; sums (total, rounding lost) += Σ coefficients_i (scores_i − middle)."""
    total, lost = sums[0], sums[1]
    for i in range(len(scores)):
        coefficients[i] *= factor
        total, lost = compensated(total, lost, coefficients[i] * (scores[i] - middle))
    sums[0], sums[1] = total, lost


@kernel
def count_digits(scores, prefixes, shift, counts):
    """counts[p, digit] += scores whose key has prefixes[p] above the digit at bit `shift`, for sorted different prefixes.

    The key of a score is a uint64 with the order of the scores; −0.0 has the key of 0.0.
    """
    sign = np.uint64(1) << np.uint64(63)
    shift, mask = np.uint64(shift), np.uint64((1 << DIGIT) - 1)
    for i in range(len(scores)):
        bits = np.float64(scores[i] + 0.0).view(np.uint64)
        digits = (~bits if bits & sign else bits | sign) >> shift
        prefix = digits >> np.uint64(DIGIT)
        for p in range(len(prefixes)):
            if prefixes[p] == prefix:
                counts[p, digits & mask] += 1
                break


@kernel
def count_ranges(scores, codes, splitters, inside, ties):
    """inside[r, code] += rows strictly between splitters r − 1 and r; ties[r, code] += rows at splitter r."""
    for i in range(len(scores)):
        r = 0
        for splitter in splitters:  # no branch to predict: faster than bisection
            r += splitter < scores[i]
        if r < len(splitters) and splitters[r] == scores[i]:
            ties[r, codes[i]] += 1
        else:
            inside[r, codes[i]] += 1


@kernel
def pick(scores, codes, lower, upper, positions, ends, out):
    """Fill `out` with the scores strictly between two bounds, those of code c in out[ends[c]:ends[c + 1]].

    `positions` (int32) is scratch, as long as `scores`.
    """
    found = 0
    for i in range(len(scores)):
        positions[found] = i
        found += (lower < scores[i]) & (scores[i] < upper)
    ends[:] = 0
    for t in range(found):
        ends[codes[positions[t]] + 1] += 1
    for code in range(len(ends) - 1):
        ends[code + 1] += ends[code]
    for t in range(found):
        i = positions[t]
        out[ends[codes[i]]] = scores[i]
        ends[codes[i]] += 1
    for code in range(len(ends) - 1, 0, -1):
        ends[code] = ends[code - 1]
    ends[0] = 0
