"""The mean of the targets of a regression: the intercept of models that fit none."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.foundation.chunk import Chunk


def mean_target(feed: Feed) -> float:
    """Σ u y / Σ u, 0 where no row has a weight; a pass, of weighted rows two. Sums are exact, however rows are stored."""
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
