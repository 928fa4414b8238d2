"""Kernels from columns to sorted CSR rows."""

from __future__ import annotations

import math

import numpy as np

from streamcut.compiler.jit import helper, kernel


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


@helper
def _sort(numbers):
    """Shell's sort with the gaps of Gonnet and Baeza-Yates, in place."""
    gap = len(numbers)
    while gap > 1:
        gap = max(1, (5 * gap - 1) // 11)
        for place in range(gap, len(numbers)):
            number, at = numbers[place], place
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number


@kernel
def assemble(fixed, values, features, line, indptr, indices, data):
    """CSR rows of numeric columns and at most one feature of value 1 from each other column.

    Equal features of a row are summed, values of 0 left out.

    fixed     int32 (p), increasing: the feature of each numeric column; values float64 (p, n)
    features  int32 (q, n): features of other columns, negative: none; line int32 (q): working memory
    indptr int64 (n + 1), indices int32 and data float64 ((p + q) · n) are filled

    Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(indptr) - 1):
        count = 0
        for slot in range(len(features)):
            feature = features[slot, row]
            if feature >= 0:
                line[count] = feature
                count += 1
        _sort(line[:count])
        start, number, slot = at, 0, 0
        while number < len(fixed) or slot < count:
            if slot == count or (number < len(fixed) and fixed[number] <= line[slot]):
                feature, value = fixed[number], values[number, row]
                number += 1
            else:
                feature, value = line[slot], 1.0
                slot += 1
            if value == 0.0:
                continue
            if at > start and indices[at - 1] == feature:
                data[at - 1] += value
                ones = False
            else:
                indices[at], data[at] = feature, value
                ones &= value == 1.0
                at += 1
        indptr[row + 1] = at
    return ones


@kernel
def count_words(ends, features, indptr, indices, data):
    """CSR rows of lists of features: row i has features[ends[i]:ends[i + 1]] (int32, sorted in place; negative: none), counted.

    indptr int64 (n + 1), indices int32 and data float64 (as long as features) are filled. Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(ends) - 1):
        found = features[ends[row] : ends[row + 1]]
        _sort(found)
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
