"""Kernels of the statistics of rows (streamcut.io.manifest) and of single features (streamcut.io.features)."""

import numpy as np

from streamcut.compiler.jit import kernel

LARGEST, TOTAL, SQUARES, NONZEROS = range(4)  # columns of a table with one row per feature: a row is half a cache line


@kernel
def tally(indptr, indices, data, unit, first, table):
    """Add the entries of CSR rows to `table`, float64 (features, 4), in their order and in place.

    data float or int, as long as indices, or empty with `unit`: every value is 1. Entries of value 0 count as absent.
    Row 0 of the table is feature `first`; entries of other features are skipped. Returns whether any lay beyond the table.
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


@kernel
def tally_about(indptr, indices, data, unit, weight, slots, about, table):
    """As `tally` for entries x of the features with a place in `slots` (n_features; −1: none), by the weights of their rows.

    Row p of the table (float64 (k, 4)) gets the largest |x|, Σ u (x − about[p]), Σ u (x − about[p])² and Σ u; weight float64 (n)
    or empty: all are 1. Rows of weight 0 are skipped.
    """
    value, u = 1.0, 1.0
    for i in range(len(indptr) - 1):
        if len(weight) > 0:
            u = weight[i]
            if u == 0.0:
                continue
        for t in range(indptr[i], indptr[i + 1]):
            p = slots[indices[t]]
            if p < 0:
                continue
            if not unit:
                value = np.float64(data[t])
                if value == 0.0:
                    continue
            row, x = table[p], value - about[p]
            row[LARGEST] = max(row[LARGEST], abs(value))
            row[TOTAL] += u * x
            row[SQUARES] += u * (x * x)
            row[NONZEROS] += u


@kernel
def row_statistics(indptr, indices, data, unit):
    """(largest |value|, largest squared row norm, longest row, largest index or -1); `unit`: every value is 1."""
    largest, norm, longest, top = 0.0, 0.0, 0, -1
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        longest = max(longest, stop - start)
        if stop > start:
            top = max(top, indices[stop - 1])
        if unit:
            norm = max(norm, float(stop - start))
            largest = max(largest, 1.0 if stop > start else 0.0)
            continue
        total = 0.0
        for t in range(start, stop):
            value = np.float64(data[t])  # Numba's float() keeps float32
            total += value * value
            largest = max(largest, abs(value))
        norm = max(norm, total)
    return largest, norm, longest, top
