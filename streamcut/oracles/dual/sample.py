"""Which free rows a row cache takes where passes are accelerated: a random sample of them.

The cache may not hold all free rows. Plain ascent keeps those nearest to their kink: the others will soon be at a bound, and
leave. Accelerated ascent goes to a mean of what its steps amount to, so sweeps should move that mean as steps over all rows
would: they are the mini-batches of a stochastic method, and those of a sample are not biased.
"""

from __future__ import annotations

import numpy as np

from streamcut.losses.loss import FREE_FIRST

_PIECE = 1 << 14  # rows that are drawn at once


def sample_free(keys: np.ndarray, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """The keys (n) of free rows become random numbers in [0, 1), in place, by `seed` and the rows' `numbers` (n) alone.

    splitmix64 (Steele, Lea & Flood 2014), of which a row's number says how many draws came before.
    """
    start = np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64)
    for first in range(0, len(keys), _PIECE):
        own = slice(first, first + _PIECE)
        x = numbers[own].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        np.copyto(keys[own], (x >> np.uint64(11)) * 2.0**-53, where=keys[own] < FREE_FIRST)
