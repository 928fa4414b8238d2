"""Two numbers that kernel models take from the data: the variance of all values, zeros included, which scales γ by default,
and the mean of the targets, the intercept of models that fit none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from streamcut.compiled.vectors import add_moments
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed, Traffic
from streamcut.foundation.chunk import Chunk

_FAR = 1e-4  # of the mean square: a smaller variance is summed again, about the mean


def automatic_gamma(feed: Feed) -> float:
    """1 / (d · variance of all n × d values), as scikit-learn's "scale", which weights of rows do not change; a pass or two.

    Storage does not change a bit. Raises BadInputError when all values are equal.
    """
    statistics = feed.data.manifest.statistics
    count = statistics.n_rows * statistics.n_features
    sums = _moments(feed, 0.0)
    variance = sums[1] / count - (sums[0] / count) ** 2
    if variance <= _FAR * (sums[1] / count):
        mean = sums[0] / count
        stored = _moments(feed, None)[0]
        sums = _moments(feed, mean) + (count - stored) * np.array([-mean, mean * mean])
        variance = sums[1] / count - (sums[0] / count) ** 2
    if not variance > 0.0:
        raise BadInputError("gamma: its default, 1 / (features × variance of all values), needs values that differ: give one")
    return float(1.0 / (statistics.n_features * variance))


def _moments(feed: Feed, about: float | None) -> np.ndarray:
    """Σ (v − about), Σ (v − about)² over the stored values v (None: their number, twice)."""
    sums = np.zeros(2)
    for chunk in feed.blocks(0, feed.data.manifest.statistics.n_rows, feed.buffers(), Traffic()):
        ones = np.broadcast_to(np.int8(1), chunk.nnz)
        values = ones if chunk.data is None or about is None else chunk.data[chunk.indptr[0] : chunk.indptr[-1]]
        add_moments(values - np.float64(about) if about else values, sums)
    return sums


def mean_target(feed: Feed) -> float:
    """Σ u y / Σ u, 0 if no row has a weight; one pass, two with weights. Sums are exact, however rows are stored."""
    statistics = feed.data.manifest.statistics
    total = math.fsum(_numbers(feed, "y"))
    if statistics.weight_sum is None:
        return total / statistics.n_rows
    weight = math.fsum(_numbers(feed, "weight"))
    return total / weight if weight > 0.0 else 0.0


def _numbers(feed: Feed, name: str) -> Iterator[float]:
    """u y, or u, of each row."""
    for chunk in feed.blocks(0, feed.data.manifest.statistics.n_rows, feed.buffers(), Traffic()):
        yield from _of_rows(chunk, name).tolist()


def _of_rows(chunk: Chunk, name: str) -> np.ndarray:
    if name == "weight":
        assert chunk.weight is not None
        return chunk.weight
    return chunk.y if chunk.weight is None else chunk.y * chunk.weight
