"""Which rows a Nyström map is made of: any, or those that the others do not explain."""

from __future__ import annotations

import numpy as np

from streamcut.execution.feed import Feed, Traffic
from streamcut.io.dataset import Dataset
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.nystroem import NystroemMap
from streamcut.oracles.kernel_columns import fetch

CHOICES = ("uniform", "leverage")
_CANDIDATES = 8  # for each landmark, of which leverage chooses


def nystroem_map(data: Dataset, kernel: Kernel, landmarks: int, choice: str, seed: int) -> NystroemMap:
    """The map of `landmarks` rows of `data`, drawn by `choice`.

    uniform   all rows alike
    leverage  of 8 times as many rows, drawn uniformly, each in proportion to how much of it a first such map leaves out:
              k(x, x) − ‖features‖² plus a share that all have. That is about the ridge leverage score of x (Musco & Musco 2017,
              one level); rows far from all others count more, duplicates less
    """
    statistics = data.manifest.statistics
    rng = np.random.default_rng(seed)
    feed, traffic = Feed(data), Traffic()
    count = min(landmarks, statistics.n_rows)
    identity = {"landmarks": landmarks, "choice": choice, "seed": seed}

    def made(rows: np.ndarray) -> NystroemMap:
        return NystroemMap.of(kernel, fetch(feed, rows, feed.buffers(), traffic), statistics.n_features, identity)

    if choice == "uniform":
        return made(np.sort(rng.choice(statistics.n_rows, count, replace=False, shuffle=False)))
    drawn = np.sort(rng.choice(statistics.n_rows, min(_CANDIDATES * count, statistics.n_rows), replace=False, shuffle=False))
    pilot = made(np.sort(rng.choice(drawn, count, replace=False, shuffle=False)))
    left = np.array([_left_out(pilot, kernel, chunk) for chunk in fetch(feed, drawn, feed.buffers(), traffic)])
    chances = left + left.mean() + np.finfo(np.float64).tiny
    return made(np.sort(rng.choice(drawn, count, replace=False, shuffle=False, p=chances / chances.sum())))


def _left_out(pilot: NystroemMap, kernel: Kernel, row) -> float:
    """Squared distance of φ(x) from the span of the pilot's landmarks, of a chunk of one row."""
    values = np.ones(row.nnz) if row.data is None else row.data.astype(np.float64)
    whole = float(kernel.diagonal(np.array([values @ values]))[0])
    features = pilot.features(row).astype(np.float64)[0]
    return max(whole - float(features @ features), 0.0)
