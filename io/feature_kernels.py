"""Kernel of the statistics of single features."""

import numpy as np

from streamcut.jit import kernel

LARGEST, TOTAL, SQUARES, NONZEROS = range(4)  # columns of a table, one row a feature: a row is half a cache line


@kernel
def tally(indptr, indices, data, unit, first, table):
    """Add the entries of CSR rows to `table`, float64 (features, 4), in their order and in place.

    data float or int, as long as indices, or empty with `unit`: every value is 1. Entries of value 0 count as absent.
    Row 0 of the table is feature `first`; entries of other features are passed over. Returns whether there were any beyond.
    """
    value, beyond = 1.0, False
    for t in range(indptr[0], indptr[-1]):
        feature = indices[t] - first
        if feature < 0 or feature >= len(table):
            beyond |= feature >= 0
            continue
        if not unit:
            value = np.float64(data[t])
            if value == 0.0:
                continue
        row = table[feature]
        row[LARGEST] = max(row[LARGEST], abs(value))
        row[TOTAL] += value
        row[SQUARES] += value * value
        row[NONZEROS] += 1.0
    return beyond
