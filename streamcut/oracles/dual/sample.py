"""Which free rows a row cache takes where passes are accelerated: a random sample of them.

The cache may not hold all free rows. Plain ascent keeps those nearest to their kink: the others will soon be at a bound, and
leave. Accelerated ascent goes to a mean of what its steps amount to, so sweeps should move that mean as steps over all rows
would: they are the mini-batches of a stochastic method, and those of a sample are not biased.
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled.splitmix import draw_below


def sample_free(keys: np.ndarray, free_below: float, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """The keys (n) of free rows, which are `free_below`, become random numbers in [0, 1), in place, by `seed` and the rows'
    `numbers` (n) alone."""
    draw_below(free_below, numbers, np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64), keys)
