"""SplitMix64 (Steele, Lea & Flood 2014): random numbers for kernels, from a seed and the numbers of their uses."""

import numpy as np

from streamcut.compiler.jit import inlined, kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _scrambled(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def _drawn(state, below):
    """(next state, a number below `below`, which is less than 2³²)."""
    state += _GAMMA
    return state, np.int64(((_scrambled(state) >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))


@inlined
def joined(seed, number):
    """A seed below 2⁶³ from another and a number, both uint64."""
    seed = ((seed ^ number) * _GAMMA + np.uint64(1)) & np.uint64((1 << 63) - 1)
    return seed ^ (seed >> np.uint64(29))


@kernel
def keys(numbers, seed, out):
    """out[i] = a uint64 of (numbers[i], seed), the same in every place and call."""
    for i in range(len(numbers)):
        x = _scrambled(np.uint64(numbers[i]) + np.uint64(seed) * _GAMMA) + _GAMMA
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        out[i] = x ^ (x >> np.uint64(31))


@kernel
def draw_below(limit, numbers, seed, out):
    """out[i] (n,) becomes a random number in [0, 1) of (numbers[i], seed) where it is less than `limit`, in place."""
    for i in range(len(out)):
        if out[i] < limit:
            out[i] = np.float64(_scrambled(np.uint64(numbers[i]) * _GAMMA + np.uint64(seed)) >> np.uint64(11)) * 2.0**-53


@kernel
def shuffle(order, size, seed):
    """order (n,) int64 in random order (Fisher–Yates), in place: groups of `size` among themselves, then the rows of each.

    The remainder after the last whole group is shuffled separately; with `size` above n all rows are. Deterministic for a seed.
    """
    state, groups = np.uint64(seed), len(order) // size
    for group in range(groups - 1, 0, -1):
        state, other = _drawn(state, group + 1)
        for i in range(size):
            here, there = group * size + i, other * size + i
            order[here], order[there] = order[there], order[here]
    for group in range(groups + 1):
        first = group * size
        for i in range(min(size, len(order) - first) - 1, 0, -1):
            state, other = _drawn(state, i + 1)
            order[first + i], order[first + other] = order[first + other], order[first + i]


@kernel
def sort_groups(rows, size, group, after, out):
    """out (n,) int64 becomes the permutation `rows` (n,) with each group of `size` in ascending order.

    group (n,) and after (groups,), int64, are scratch space.
    """
    for at in range(len(rows)):
        group[rows[at]] = at // size
    for g in range(len(after)):
        after[g] = g * size
    for row in range(len(rows)):
        g = group[row]
        out[after[g]] = row
        after[g] += 1
