"""A row and the weights of columns (streamcut.compiled.columns): its scores, its steps, and its changes in sums.

Vectors of columns are (D, A), or (D,) for the only column (Single of streamcut.compiled.problems). Numba knows which, and drops
what is for the other before it compiles. `rows` are Entries: of a block or of a cache, they are compiled once.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of records)
from streamcut.compiled.linear import rounded, square_of
from streamcut.compiled.records import entry
from streamcut.compiled.vectors import shrunk
from streamcut.compiler.jit import helper, inlined


@inlined
def number_of(W, listed, m):
    """The column listed[m] of W; 0, as the compiler then knows, if there is one column."""
    if W.ndim == 1:
        return np.uint64(0)
    return np.uint64(listed[m])


@inlined
def weight_at(W, j, a):
    """W[j, a], or W[j] of the only column."""
    if W.ndim == 1:
        return W[j]
    return W[j, a]


@inlined
def add_at(W, j, a, value):
    """W[j, a] += value, or W[j] += value."""
    if W.ndim == 1:
        W[j] += value
    else:
        W[j, a] += value


@inlined
def thresholded(v, l1, a):
    """S(v, l1[a]); v itself without thresholds."""
    if l1 is None:
        return v
    return shrunk(v, l1[a])


@inlined
def constant_weight(v, l1, a, spared):
    """`thresholded`, for the weight of the bias feature: v itself if that is spared."""
    return v if spared else thresholded(v, l1, a)


@helper
def scores(rows, W, l1, bias, spared, i, listed, count, out):
    """out[m] = ⟨W[:, listed[m]], xᵢ⟩ for the first `count` of `listed`; with an `l1`, of W after thresholds l1 (A,)."""
    start, stop, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), len(W) - 1
    if W.ndim == 1 or count == 1:
        c = number_of(W, listed, 0)
        total = bias * constant_weight(weight_at(W, last, c), l1, c, spared) if bias != 0.0 else 0.0
        for p in range(start, stop):
            total += entry(rows.data, p) * thresholded(weight_at(W, np.uint64(rows.indices[p]), c), l1, c)
        out[0] = total
        return
    for m in range(count):
        out[m] = bias * constant_weight(weight_at(W, last, listed[m]), l1, listed[m], spared) if bias != 0.0 else 0.0
    for p in range(start, stop):
        j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
        if count == W.shape[1]:
            for m in range(count):
                out[m] += value * thresholded(weight_at(W, j, m), l1, m)
        else:
            for m in range(count):
                out[m] += value * thresholded(weight_at(W, j, listed[m]), l1, listed[m])


@helper
def scores_and_square(rows, W, l1, bias, spared, i, listed, count, out):
    """`scores`; returns ‖xᵢ‖²."""
    if W.ndim > 1:
        scores(rows, W, l1, bias, spared, i, listed, count, out)
        return square_of(rows.indptr, rows.data, bias, i)
    total = bias * constant_weight(weight_at(W, len(W) - 1, 0), l1, 0, spared) if bias != 0.0 else 0.0
    square = bias * bias
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        value = entry(rows.data, p)
        total += value * thresholded(weight_at(W, np.uint64(rows.indices[p]), 0), l1, 0)
        square += value * value
    out[0] = total
    return square


@helper
def add_steps(rows, W, bias, i, listed, count, steps):
    """W[:, listed[m]] += steps[m] xᵢ for the first `count` of `listed`."""
    start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    if W.ndim == 1 or count == 1:
        c, step = number_of(W, listed, 0), steps[0]
        for p in range(start, stop):
            add_at(W, np.uint64(rows.indices[p]), c, step * entry(rows.data, p))
        if bias != 0.0:
            add_at(W, len(W) - 1, c, step * bias)
        return
    for p in range(start, stop):
        j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
        for m in range(count):
            add_at(W, j, listed[m], steps[m] * value)
    if bias != 0.0:
        for m in range(count):
            add_at(W, len(W) - 1, listed[m], steps[m] * bias)


@helper
def add_changes(rows, U, bias, i, moved, count, before, after, vector):
    """U[:, moved[m]] += after[m] xᵢ − before[m] xᵢ, each on the grid of `vector`, for the first `count` of `moved`."""
    if count == 0:
        return
    start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    if U.ndim == 1 or count == 1:
        c, taken, given = number_of(U, moved, 0), before[0], after[0]
        for p in range(start, stop):
            value = entry(rows.data, p)
            add_at(U, np.uint64(rows.indices[p]), c, rounded(given * value, vector) - rounded(taken * value, vector))
        if bias != 0.0:
            add_at(U, len(U) - 1, c, rounded(given * bias, vector) - rounded(taken * bias, vector))
        return
    for p in range(start, stop):
        j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
        for m in range(count):
            add_at(U, j, moved[m], rounded(after[m] * value, vector) - rounded(before[m] * value, vector))
    if bias != 0.0:
        for m in range(count):
            add_at(U, len(U) - 1, moved[m], rounded(after[m] * bias, vector) - rounded(before[m] * bias, vector))
