"""Copies of rows in a cache, independent of what is computed from them."""

import numpy as np

from streamcut.compiler.jit import kernel


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
