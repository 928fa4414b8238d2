"""Kernels from columns to sorted CSR rows: at most one feature per column and row, or lists of features."""

from __future__ import annotations

import math

import numpy as np

from streamcut.compiler.jit import allocating, kernel
from streamcut.io.tables.word_kernels import MISSING, NOTHING

_ROWS = 256  # sorted at once: a column of that many features is 1 kB
_NEGATIVE = np.uint32(1 << 31)  # negative features, viewed as unsigned, are at least this


def sorting_network(size: int) -> np.ndarray:
    """int64 (·, 2): the pairs of `size` numbers to compare, and to exchange if out of order, to sort them.

    Batcher's odd-even merge sort, Knuth volume 3, algorithm 5.2.2M.
    """
    pairs, top = [], 1 << max(size - 1, 0).bit_length() >> 1
    step = top
    while step:
        last, rest, apart = top, 0, step
        while True:
            pairs += [(one, one + apart) for one in range(size - apart) if one & step == rest]
            if last == step:
                break
            apart, last, rest = last - step, last >> 1, step
        step >>= 1
    return np.array(pairs, np.int64).reshape(-1, 2)


@kernel
def numbers(given, values, codes):
    """Copy a numeric column, float64 (n), to `values` with 0 for nan; set `codes`, int32 (n), to MISSING or NOTHING.

    Returns (first row of an infinite value, first row of nan), −1 if there is none.
    """
    infinite = missing = -1
    for row in range(len(given) - 1, -1, -1):
        value = given[row]
        nan = value != value
        values[row] = 0.0 if nan else value
        codes[row] = MISSING if nan else NOTHING
        if nan:
            missing = row
        elif abs(value) == np.inf:
            infinite = row
    return infinite, missing


@kernel
def plain_numbers(given, centres, spreads, values, odd):
    """`numbers` and `standardise` for many columns, float64 (p, n), and centres and spreads (p).

    Columns that hold nan or infinities are marked in `odd`, bool (p), and need these.
    """
    for at in range(len(given)):
        odd[at] = False
        centre, spread = centres[at], spreads[at]
        for row in range(given.shape[1]):
            value = given[at, row]
            odd[at] |= not math.isfinite(value)
            values[at, row] = (value - centre) / spread


@kernel
def standardise(values, codes, centre, spread):
    """Replace values, float64 (n), by (value − centre) / spread in place; missing ones (`codes` from `numbers`) stay 0."""
    for row in range(len(values)):
        if codes[row] != MISSING:
            values[row] = (values[row] - centre) / spread


@kernel
def tfidf(indptr, indices, idf, data):
    """Weight CSR rows of counts by (1 + ln count) · idf, `idf` float64 (features), with rows of length 1; `data` in place."""
    for row in range(len(indptr) - 1):
        square = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            data[at] = (1.0 + math.log(data[at])) * idf[indices[at]]
            square += data[at] * data[at]
        length = math.sqrt(square)
        for at in range(indptr[row], indptr[row + 1]):
            data[at] /= length


@kernel
def assemble(fixed, values, features, pairs, indptr, indices, data):
    """CSR rows of numeric columns and at most one feature of value 1 from each other column.

    Equal features of a row are summed, values of 0 left out.

    fixed     int32 (p), increasing: the feature of each numeric column; values float64 (p, n)
    features  uint32 (q, n), a view of int32: features of other columns, negative: none; sorted in place
    pairs     int64 (·, 2): a network that sorts q numbers (see `sorting_network`)
    indptr int64 (n + 1), indices int32 and data float64 ((p + q) · n) are filled

    Returns whether every value is 1.
    """
    at, ones, n, q = 0, True, len(indptr) - 1, len(features)
    indptr[0] = 0
    for begin in range(0, n, _ROWS):
        stop = min(begin + _ROWS, n)
        for t in range(len(pairs)):
            lower, upper = features[pairs[t, 0], begin:stop], features[pairs[t, 1], begin:stop]
            for row in range(stop - begin):  # branch-free, so that it vectorises over rows
                one, other = lower[row], upper[row]
                lower[row], upper[row] = min(one, other), max(one, other)
        for row in range(begin, stop):
            start, number = at, 0
            for slot in range(q + 1):
                feature = features[slot, row] if slot < q else _NEGATIVE
                while number < len(fixed) and np.uint32(fixed[number]) <= feature:
                    value = values[number, row]
                    if value != 0.0:
                        if at > start and indices[at - 1] == fixed[number]:
                            data[at - 1] += value
                            ones = False
                        else:
                            indices[at], data[at] = fixed[number], value
                            ones &= value == 1.0
                            at += 1
                    number += 1
                if feature >= _NEGATIVE:
                    break
                if at > start and indices[at - 1] == np.int32(feature):
                    data[at - 1] += 1.0
                    ones = False
                else:
                    indices[at], data[at] = np.int32(feature), 1.0
                    at += 1
            indptr[row + 1] = at
    return ones


@allocating
def count_words(ends, features, indptr, indices, data):
    """CSR rows of lists of features: row i has features[ends[i]:ends[i + 1]] (int32, sorted in place; negative: none), counted.

    indptr int64 (n + 1), indices int32 and data float64 (as long as features) are filled. Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(ends) - 1):
        found = features[ends[row] : ends[row + 1]]
        found.sort()
        last = np.int32(-1)
        for feature in found:
            if feature < 0:
                continue
            if feature == last:
                data[at - 1] += 1.0
                ones = False
            else:
                indices[at], data[at] = feature, 1.0
                at += 1
            last = feature
        indptr[row + 1] = at
    return ones


@kernel
def merge_rows(a, a_data, b, b_data, indptr, indices, data):
    """CSR rows with the entries of `a` and `b`, each (indptr, indices); values of equal features are summed.

    Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(indptr) - 1):
        i, i_stop = a[0][row], a[0][row + 1]
        j, j_stop = b[0][row], b[0][row + 1]
        while i < i_stop or j < j_stop:
            if j >= j_stop or (i < i_stop and a[1][i] <= b[1][j]):
                indices[at], data[at] = a[1][i], a_data[i]
                if j < j_stop and a[1][i] == b[1][j]:
                    data[at] += b_data[j]
                    j += 1
                i += 1
            else:
                indices[at], data[at] = b[1][j], b_data[j]
                j += 1
            ones &= data[at] == 1.0
            at += 1
        indptr[row + 1] = at
    return ones
