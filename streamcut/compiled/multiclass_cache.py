"""Dual coordinate ascent on the Crammer-Singer loss for rows in a cache, by the steps of streamcut.compiled.multiclass_dual.

`cached` are records.CachedRows with shares (rows, K), the p_i, and the number of each row's class as its target.
"""

from streamcut.compiled.multiclass_dual import add_change, coordinate_step, encode, lead, score
from streamcut.compiled.shares import share_of
from streamcut.compiler.jit import kernel


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
def sweep(order, cached, C, bias, l1, slack, W, buffers):
    """A sweep of dual ascent over cached rows in `order` at W (V, where there is an `l1`); shares and W move in place.

    Rows whose class has all the share and leads by more than `slack` are shrunk away (Hsieh et al. 2008, 3.2): the others come
    first in `order`. Returns (C Σ u_i Δ(1 − p_t), how many they are, the largest violation: how far a class with share trails).
    """
    gain, largest, left = 0.0, 0.0, 0
    for i in order:
        t, share = cached.target[i], cached.share[i]
        score(cached, W, l1, bias, i, buffers.new)
        ahead = lead(t, buffers.new, share)
        if ahead > slack:
            continue
        order[left] = i
        left += 1
        if ahead >= 0.0:
            continue
        largest = max(largest, -ahead)
        gain += coordinate_step(cached, i, t, C * cached.weight[i], cached.square[i], bias, W, share, buffers)
    return gain, left, largest


@kernel
def write_back(cached, first_row, slot, bias, grids, codes, sums, past, buffers):
    """The shares of cached rows go to `slot` of `codes`, of the rows from `first_row` on; cut 1 and its constant follow."""
    for i in range(len(cached.number)):
        t, now = cached.target[i], codes[cached.number[i] - first_row, slot]
        for k in range(len(now)):  # `past[:] = now` compiles for seconds: a message on lengths that differ
            past[k] = now[k]
        encode(t, cached.share[i], now)
        add_change(cached, i, t, cached.weight[i], bias, past, now, 1, grids, sums, buffers)
