"""The choice of rows for a Nyström map."""

from __future__ import annotations

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.maps import NystroemMap
from streamcut.oracles.kernel_columns import fetch


def nystroem_map(feed: Feed, kernel: Kernel, landmarks: int, seed: int) -> NystroemMap:
    """The map of `landmarks` rows of the data of `feed`, drawn uniformly or in proportion to weights, of weight 0 never."""
    rows = fetch(feed, _drawn(feed, np.random.default_rng(seed), landmarks), feed.buffers(), Traffic())
    return NystroemMap.of(kernel, rows, feed.data.manifest.statistics.n_features, {"landmarks": landmarks, "seed": seed})


def _drawn(feed: Feed, rng: np.random.Generator, most: int) -> np.ndarray:
    """Numbers of up to `most` distinct rows, increasing: drawn uniformly, or in proportion to their weights, never of weight 0.

    With weights each row has the key log(r) / u, r uniform, and the largest are taken (Efraimidis & Spirakis 2006); one pass.
    """
    statistics = feed.data.manifest.statistics
    if statistics.weight_sum is None:
        return np.sort(rng.choice(statistics.n_rows, min(most, statistics.n_rows), replace=False, shuffle=False))
    numbers, keys = np.empty(0, np.int64), np.empty(0)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), Traffic()):
        assert block.weight is not None
        counts = np.flatnonzero(block.weight)
        numbers = np.append(numbers, block.first_row + counts)
        keys = np.append(keys, np.log(rng.random(len(counts))) / block.weight[counts])
        if len(keys) > most:
            best = np.sort(np.argpartition(-keys, most - 1)[:most])
            numbers, keys = numbers[best], keys[best]
    return numbers
