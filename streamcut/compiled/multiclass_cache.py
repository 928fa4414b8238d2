"""Dual coordinate ascent on the Crammer-Singer loss for rows in a cache, by the steps of streamcut.compiled.multiclass_dual.

The `cached_` arrays, `number`, `goal`, `weight`, `square` are those of streamcut.compiled.cached_rows, `share` (rows, K) is p_i.
"""

from streamcut.compiled.multiclass_dual import _add_change, _climb, _encode, _lead, _score
from streamcut.compiled.shares import share_of
from streamcut.jit import kernel


@kernel
def remember(rows, target, codes, dual, share):
    """The shares of the `rows` of a block that were taken, and what is left to their `target`."""
    for n in range(len(rows)):
        i, others = rows[n], 0.0
        for k in range(codes.shape[2]):
            share[n, k] = share_of(codes[i, dual, k])
            others += share[n, k]
        share[n, target[i]] = max(0.0, 1.0 - others)


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
