"""Random orders of rows, drawn where numbers of NumPy's generators would take as long as the visits."""

import numpy as np

from streamcut.jit import inlined, kernel


@inlined
def _drawn(state, below):
    """(next state, a number below `below`, which is less than 2³²): splitmix64 (Steele et al. 2014), its upper half scaled."""
    state += np.uint64(0x9E3779B97F4A7C15)
    x = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return state, np.int64(((x >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))


@kernel
def shuffle(order, size, seed):
    """order (n,) int64 in random order (Fisher–Yates), in place: groups of `size` among themselves, then the rows of each.

    What is left after the last whole group is shuffled by itself; with `size` above n all rows are. The same for the same seed.
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
