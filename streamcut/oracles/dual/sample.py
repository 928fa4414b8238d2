"""The free rows that a row cache takes where passes are accelerated: a random sample.

The cache may be too small for all free rows. Plain ascent keeps those nearest to their kink: the others will soon reach a bound
and leave. Accelerated ascent converges to a mean of its steps, so sweeps should move that mean as steps over all rows
would: they are the mini-batches of a stochastic method, and a random sample is unbiased.
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled.splitmix import draw_below


def sample_free(keys: np.ndarray, free_below: float, numbers: np.ndarray, seed: tuple[int, int]) -> None:
    """Replace the keys (n) below `free_below`, those of free rows, in place by random numbers in [0, 1) that depend on `seed`
    and the rows' `numbers` (n) alone."""
    draw_below(free_below, numbers, np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64), keys)
