"""The variance of all values of a data set, zeros included: what γ is scaled by when nobody chooses it."""

from __future__ import annotations

import numpy as np

from streamcut.compiled.moments import add_moments
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed, Traffic


def automatic_gamma(feed: Feed) -> float:
    """1 / (d · variance of all m × d values), as scikit-learn's "scale"; one pass, and the same bits however rows are stored.

    Raises BadInputError when all values are equal.
    """
    statistics = feed.data.manifest.statistics
    sums = np.zeros(2)
    for chunk in feed.blocks(0, statistics.n_rows, feed.buffers(), Traffic()):
        ones = np.broadcast_to(np.int8(1), chunk.nnz)
        add_moments(ones if chunk.data is None else chunk.data[chunk.indptr[0] : chunk.indptr[-1]], sums)
    count = statistics.n_rows * statistics.n_features
    variance = sums[1] / count - (sums[0] / count) ** 2
    if not variance > 0.0:
        raise BadInputError("gamma: auto is 1 / (features × variance of all values), but all values are equal; give a number")
    return float(1.0 / (statistics.n_features * variance))
