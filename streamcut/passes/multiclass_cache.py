"""Dual coordinate ascent on the Crammer-Singer loss for rows in a cache, by the steps of streamcut.passes.multiclass_dual.

The `cached_` arrays, `number`, `key`, `goal`, `weight`, `square`, `share` (rows, K) belong to the rows in the cache: CSR, row
numbers, keys, targets, u_i, ‖x_i‖², p_i.
"""

import numpy as np

from streamcut.jit import kernel
from streamcut.passes.multiclass_dual import _add_change, _climb, _encode, _lead, _score, _share, _square

# The disk cache of compiled kernels compares this file alone; so the SHA-256 of multiclass_dual.py stands here, for a test.
HELPERS = "8aac29d0f2250c0c"


@kernel
def offer(
    first, indptr, indices, data, target, u, keys, codes, dual, bias, first_row, limit, n,
    cached_indptr, cached_indices, cached_data, number, key, weight, square, share, goal,
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
        own, norm = 1.0 if u is None else u[i], _square(indptr, data, bias, i)
        if norm == 0.0 or own == 0.0:
            continue
        for p in range(start, stop):
            cached_indices[at] = indices[p]
            if cached_data is not None:
                cached_data[at] = 1.0 if data is None else np.float64(data[p])
            at += np.uint64(1)
        number[n], key[n], weight[n], square[n], goal[n] = first_row + i, keys[i], own, norm, target[i]
        others = 0.0
        for k in range(codes.shape[2]):
            share[n, k] = _share(codes[i, dual, k])
            others += share[n, k]
        share[n, target[i]] = max(0.0, 1.0 - others)
        n += 1
        cached_indptr[n] = at
    return len(target), n


@kernel
def keep(kept, cached_indptr, cached_indices, cached_data, number, key, weight, square, share, goal):
    """Leaves only the rows `kept` (increasing) in a cache, in place."""
    at = np.uint64(0)
    for n in range(len(kept)):
        i = kept[n]
        for p in range(np.uint64(cached_indptr[i]), np.uint64(cached_indptr[i + 1])):
            cached_indices[at] = cached_indices[p]
            if cached_data is not None:
                cached_data[at] = cached_data[p]
            at += np.uint64(1)
        number[n], key[n], weight[n], square[n], goal[n] = number[i], key[i], weight[i], square[i], goal[i]
        for k in range(share.shape[1]):
            share[n, k] = share[i, k]
        cached_indptr[n + 1] = at


@kernel
def sweep(order, cached_indptr, cached_indices, cached_data, weight, square, share, goal, C, bias, slack, W, new, room, moved):
    """A sweep of dual ascent over cached rows in `order` at W; `share` and W move in place.

    Rows whose class has all the share and leads by more than `slack` are shrunk away (Hsieh et al. 2008, 3.2): the others come
    first in `order`. Returns (C Σ u_i Δ(1 − p_t), how many they are, the largest violation: how far a class with share trails).
    """
    gain, largest, left = 0.0, 0.0, 0
    for i in order:
        _score(cached_indptr, cached_indices, cached_data, W, bias, i, new)
        lead = _lead(goal[i], new, share[i])
        if lead > slack:
            continue
        order[left] = i
        left += 1
        if lead >= 0.0:
            continue
        largest = max(largest, -lead)
        gain += _climb(
            cached_indptr, cached_indices, cached_data, goal[i], C * weight[i], square[i], bias, i, W, share[i], new, room, moved
        )  # fmt: skip
    return gain, left, largest


@kernel
def settle(
    cached_indptr, cached_indices, cached_data, number, weight, share, goal, dual, bias, vector, scalar, codes, cuts, sums,
    past, before, after, moved,
):  # fmt: skip
    """Cached rows take their shares home: to slot `dual` of `codes`, and by their difference to the dual cut and its sum."""
    for i in range(len(number)):
        now = codes[number[i], dual]
        past[:] = now
        _encode(goal[i], share[i], now)
        _add_change(
            cached_indptr, cached_indices, cached_data, goal[i], weight[i], bias, i, past, now, 1, vector, scalar, cuts, sums,
            before, after, moved,
        )  # fmt: skip
