"""Two numbers that kernel models take from the data: the variance of all values, zeros included, which scales γ by default,
and the mean of the targets, the intercept of models that fit none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from streamcut.compiled.vectors import add_moments, add_weighted_moments
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed, Traffic
from streamcut.foundation.chunk import Chunk
from streamcut.io.features import in_order

_FAR = 1e-4  # of the mean square: a smaller variance is summed again, about the mean


def automatic_gamma(feed: Feed, *, weighted: bool = True) -> float:
    """1 / (d · variance of all m × d values), as scikit-learn's "scale"; a pass or two.

    Rows count by their weights, but for `weighted=False`; storage does not change a bit. Raises BadInputError when all values are
    equal.
    """
    statistics = feed.data.manifest.statistics
    sums, weight = _moments(feed, 0.0, weighted)
    count = weight * statistics.n_features
    variance = sums[1] / count - (sums[0] / count) ** 2
    if variance <= _FAR * (sums[1] / count):
        mean = sums[0] / count
        stored = _moments(feed, None, weighted)[0][0]
        sums = _moments(feed, mean, weighted)[0] + (count - stored) * np.array([-mean, mean * mean])
        variance = sums[1] / count - (sums[0] / count) ** 2
    if not variance > 0.0:
        raise BadInputError("gamma: auto is 1 / (features × variance of all values), but all values are equal; give a number")
    return float(1.0 / (statistics.n_features * variance))


def _moments(feed: Feed, about: float | None, weighted: bool) -> tuple[np.ndarray, float]:
    """Σ u (v − about), Σ u (v − about)² over the stored values v (None: Σ u of them, twice), and Σ u of all rows."""
    sums, weight = np.zeros(2), 0.0
    for chunk in feed.blocks(0, feed.data.manifest.statistics.n_rows, feed.buffers(), Traffic()):
        ones = np.broadcast_to(np.int8(1), chunk.nnz)
        values = ones if chunk.data is None or about is None else chunk.data[chunk.indptr[0] : chunk.indptr[-1]]
        if about:
            values = values - np.float64(about)
        if chunk.weight is None or not weighted:
            weight += chunk.n_rows
            add_moments(values, sums)
        else:
            weight = in_order(weight, chunk.weight)
            add_weighted_moments(values, np.repeat(chunk.weight, np.diff(chunk.indptr)), sums)
    return sums, weight


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
