"""Copies of rows in a cache, independent of what is computed from them.

`offer` stops where rows or entries would not fit; no caller checks it.
"""

import numpy as np

from streamcut.compiled.records import entry, put, weight_of
from streamcut.compiled.shares import square_of
from streamcut.compiler.jit import kernel


@kernel
def offer(first, rows, keys, bias, first_row, limit, n, cached):
    """Copies rows from `first` on with keys below `limit` behind the n rows of a cache, while they fit.

    Rows that dual ascent cannot move (weight 0, no features) are left out. Their dual variables are not copied. Returns (the next
    row, rows in the cache).
    """
    for i in range(first, len(rows.y)):
        if keys[i] >= limit:
            continue
        start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        at = np.uint64(cached.indptr[n])
        if n == len(cached.number) or at + (stop - start) > np.uint64(len(cached.indices)):
            return i, n
        own, norm = weight_of(rows.u, i), square_of(rows.indptr, rows.data, bias, i)
        if norm == 0.0 or own == 0.0:
            continue
        for p in range(start, stop):
            cached.indices[at] = rows.indices[p]
            put(cached.data, at, entry(rows.data, p))
            at += np.uint64(1)
        cached.number[n], cached.key[n], cached.weight[n], cached.square[n] = first_row + i, keys[i], own, norm
        cached.target[n] = rows.y[i]
        n += 1
        cached.indptr[n] = at
    return len(rows.y), n


@kernel
def keep(kept, cached_indptr, cached_indices, cached_data):
    """Leaves only the entries of the rows `kept` (increasing), in place."""
    at = np.uint64(0)
    for n in range(len(kept)):
        i = kept[n]
        for p in range(np.uint64(cached_indptr[i]), np.uint64(cached_indptr[i + 1])):
            cached_indices[at] = cached_indices[p]
            if cached_data is not None:
                cached_data[at] = cached_data[p]
            at += np.uint64(1)
        cached_indptr[n + 1] = at


@kernel
def move_up(kept, array):
    """Move the rows `kept` (increasing) of a matrix to its start, in place."""
    for n in range(len(kept)):
        for k in range(array.shape[1]):
            array[n, k] = array[kept[n], k]


@kernel
def entries_of(kept, indptr, indices, data, out_indices, out_data):
    """Copies the entries of the rows `kept` (n, bool), one after the other; returns their number. data None: none are copied."""
    at = np.uint64(0)
    for i in range(len(kept)):
        if kept[i]:
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out_indices[at] = indices[t]
                if data is not None:
                    out_data[at] = data[t]
                at += np.uint64(1)
    return at
