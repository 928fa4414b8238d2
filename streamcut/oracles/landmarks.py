"""The choice of rows for a Nyström map: uniform, or by how little the other rows explain them."""

from __future__ import annotations

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.nystroem import NystroemMap
from streamcut.oracles.kernel_columns import fetch

CHOICES = ("uniform", "leverage")
_CANDIDATES = 8  # for each landmark, from which leverage chooses


def nystroem_map(feed: Feed, kernel: Kernel, landmarks: int, choice: str, seed: int) -> NystroemMap:
    """The map of `landmarks` rows of the data of `feed`, drawn by `choice`.

    uniform   all rows alike, or in proportion to their weights; those of weight 0 never
    leverage  of 8 times as many rows, drawn uniformly, each in proportion to what a first such map leaves out of it:
              k(x, x) − ‖features‖² plus a constant. This approximates the ridge leverage score of x (Musco & Musco 2017,
              one level); rows far from all others count more, duplicates less
    """
    statistics, traffic = feed.data.manifest.statistics, Traffic()
    rng = np.random.default_rng(seed)
    identity = {"landmarks": landmarks, "choice": choice, "seed": seed}

    def made(rows: np.ndarray) -> NystroemMap:
        return NystroemMap.of(kernel, fetch(feed, rows, feed.buffers(), traffic), statistics.n_features, identity)

    if choice == "uniform":
        return made(_drawn(feed, rng, landmarks))
    drawn = _drawn(feed, rng, _CANDIDATES * landmarks)
    count = min(landmarks, len(drawn))
    pilot = made(np.sort(rng.choice(drawn, count, replace=False, shuffle=False)))
    left = np.array([_left_out(pilot, kernel, chunk) for chunk in fetch(feed, drawn, feed.buffers(), traffic)])
    missed = left + left.mean() + np.finfo(np.float64).tiny
    return made(np.sort(rng.choice(drawn, count, replace=False, shuffle=False, p=missed / missed.sum())))


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


def _left_out(pilot: NystroemMap, kernel: Kernel, row) -> float:
    """Squared distance of φ(x) from the span of the pilot's landmarks, for a chunk of one row."""
    values = np.ones(row.nnz) if row.data is None else row.data.astype(np.float64)
    whole = float(kernel.diagonal(np.array([values @ values]))[0])
    features = pilot.features(row).astype(np.float64)[0]
    return max(whole - float(features @ features), 0.0)
