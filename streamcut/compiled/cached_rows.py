"""Copies of rows in a cache, whatever is computed with them.

`offer` stops where rows or entries would not fit: it is the one that makes sure of it. The `cached_` arrays, `number`, `key`,
`weight`, `square`, `goal` belong to the rows in the cache: CSR, row numbers, keys, u_i, ‖x_i‖², classes.
"""

import numpy as np

from streamcut.compiled.shares import square_of
from streamcut.jit import kernel


@kernel
def offer(
    first, indptr, indices, data, target, u, keys, bias, first_row, limit, n,
    cached_indptr, cached_indices, cached_data, number, key, weight, square, goal,
):  # fmt: skip
    """Copies rows from `first` on with keys below `limit` behind the n rows of a cache, while there is room.

    Rows that dual ascent cannot move (weight 0, no features) are left out. Returns (the row to go on with, rows in the cache).
    """
    for i in range(first, len(target)):
        if keys[i] >= limit:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        at = np.uint64(cached_indptr[n])
        if n == len(number) or at + (stop - start) > np.uint64(len(cached_indices)):
            return i, n
        own, norm = 1.0 if u is None else u[i], square_of(indptr, data, bias, i)
        if norm == 0.0 or own == 0.0:
            continue
        for p in range(start, stop):
            cached_indices[at] = indices[p]
            if cached_data is not None:
                cached_data[at] = 1.0 if data is None else np.float64(data[p])
            at += np.uint64(1)
        number[n], key[n], weight[n], square[n], goal[n] = first_row + i, keys[i], own, norm, target[i]
        n += 1
        cached_indptr[n] = at
    return len(target), n


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
    """The rows `kept` (increasing) of a matrix become its first, in place."""
    for n in range(len(kept)):
        for k in range(array.shape[1]):
            array[n, k] = array[kept[n], k]
