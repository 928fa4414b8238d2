"""Kernels from columns to rows: at most one feature a column and row, or a list of features, into sorted CSR rows."""

from __future__ import annotations

import numpy as np

from streamcut.jit import kernel


@kernel
def assemble(features, columns, values, indptr, indices, data):
    """CSR rows of `features`, int64 (slots, n), negative where a slot has none.

    Equal features of a row are summed, values of 0 left out.

    columns  int64 (slots): the row of `values`, float64 (·, n), that has the slot's values; −1: they are 1
    indptr int64 (n + 1), indices int32 and data float64 (slots · n) are filled

    Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(features.shape[1]):
        start = at
        for slot in range(features.shape[0]):
            feature = features[slot, row]
            if feature < 0:
                continue
            value = 1.0 if columns[slot] < 0 else values[columns[slot], row]
            if value == 0.0:
                continue
            place = at
            while place > start and indices[place - 1] > feature:
                place -= 1
            if place > start and indices[place - 1] == feature:
                data[place - 1] += value
                ones = False
                continue
            for t in range(at, place, -1):
                indices[t], data[t] = indices[t - 1], data[t - 1]
            indices[place], data[place] = feature, value
            ones &= value == 1.0
            at += 1
        indptr[row + 1] = at
    return ones


@kernel
def count_words(ends, features, indptr, indices, data):
    """CSR rows of lists of features: row i has features[ends[i]:ends[i + 1]] (int64, sorted in place; negative: none), counted.

    indptr int64 (n + 1), indices int32 and data float64 (as long as features) are filled. Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(ends) - 1):
        found = features[ends[row] : ends[row + 1]]
        found.sort()
        last = np.int64(-1)
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
    """CSR rows with the entries of both `a` and `b`, each (indptr, indices); values of equal features are summed.

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
