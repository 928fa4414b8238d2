"""Statistics of every feature, as scaling needs them: kept in the store or computed in one pass over it.

They are sums over the rows in order, so their bits don't depend on shards. Row weights are ignored.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import damaged
from streamcut.io.stores import structure as k
from streamcut.io.stores.spec import FEATURES, MOST_FEATURES

BYTES = 32  # per feature, while they are computed
_FAR = 1e-4  # of the mean square: smaller variances are summed again


@dataclass(frozen=True, slots=True, eq=False)
class FeatureStatistics:
    """Of the k features that occur: arrays with one element per feature.

    index     int64, 0-based, increasing
    nonzeros  int64: rows in which it is not 0
    largest   float64: largest absolute value
    total     float64: Σ x
    squares   float64: Σ x²
    """

    index: np.ndarray
    nonzeros: np.ndarray
    largest: np.ndarray
    total: np.ndarray
    squares: np.ndarray

    def dense(self, values: np.ndarray, n_features: int) -> np.ndarray:
        """One of the arrays with an element for every feature; 0 for features that do not occur."""
        out = np.zeros(n_features, values.dtype)
        out[self.index] = values
        return out

    def to_bytes(self) -> bytes:
        """An uncompressed .npz archive without dates: the same statistics give the same bytes."""
        buffer = io.BytesIO()
        np.savez(buffer, index=self.index, nonzeros=self.nonzeros, largest=self.largest, total=self.total, squares=self.squares)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, n_features: int) -> Self:
        """The inverse of `to_bytes`. Raises ValueError for anything else."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in cls.__dataclass_fields__}
        except Exception as error:  # zipfile passes on any error of its layers
            raise ValueError(f"not feature statistics: {error}") from None
        index = arrays["index"]
        for name, array in arrays.items():
            if array.dtype != (np.int64 if name in ("index", "nonzeros") else np.float64) or array.shape != index.shape:
                raise ValueError(f"{name} is {array.dtype} {array.shape}")
        if len(index) and (index[0] < 0 or index[-1] >= n_features or (np.diff(index) <= 0).any()):
            raise ValueError("index is not increasing within the features")
        return cls(**arrays)


class FeatureTally:
    """Collects FeatureStatistics over chunks that arrive in row order: of all features, unless there are more than `most`."""

    def __init__(self, most: int) -> None:
        self._table: np.ndarray | None = np.zeros((most, 4)) if most else None  # pages are allocated on first write

    def add(self, chunk: Chunk) -> None:
        if self._table is not None and _add(chunk, 0, self._table):
            self._table = None

    def finish(self) -> FeatureStatistics | None:
        """The statistics, None when there were too many features. The counts are gone then, for memory."""
        table, self._table = self._table, None
        return None if table is None else _occurring(table, 0)


def feature_statistics(data: Dataset) -> FeatureStatistics:
    """The statistics of `data`: from the store if it keeps them, else by passes over it.

    Raises CorruptError for a damaged store.
    """
    manifest = data.manifest
    if FEATURES in manifest.extras:
        try:
            return FeatureStatistics.from_bytes(data.extra(FEATURES), manifest.statistics.n_features)  # type: ignore[attr-defined]
        except ValueError as error:
            raise damaged(f"{data.path}/{FEATURES}", str(error)) from None
    return by_passes(data)


def by_passes(data: Dataset, at_once: int = MOST_FEATURES) -> FeatureStatistics:
    """The same from the rows alone: one pass for every `at_once` features, which take BYTES each meanwhile."""
    n_features, buffers, parts = data.manifest.statistics.n_features, data.buffers(), []
    for first in range(0, max(n_features, 1), at_once):
        table = np.zeros((min(at_once, max(n_features - first, 1)), 4))
        for shard in range(len(data.manifest.shards)):
            _add(data.read(shard, buffers), first, table)
        parts.append(_occurring(table, first))
    arrays = [(part.index, part.nonzeros, part.largest, part.total, part.squares) for part in parts]
    return FeatureStatistics(*map(np.concatenate, zip(*arrays, strict=True)))


def _add(chunk: Chunk, first: int, table: np.ndarray) -> bool:
    data = np.empty(0, np.int8) if chunk.data is None else chunk.data
    return k.tally(chunk.indptr, chunk.indices, data, chunk.data is None, None, first, None, None, table)


def _occurring(table: np.ndarray, first: int) -> FeatureStatistics:
    """The statistics of the features that are nonzero somewhere."""
    index = np.flatnonzero(table[:, k.NONZEROS])
    counts = table[index, k.NONZEROS].astype(np.int64)
    return FeatureStatistics(index + first, counts, *(table[index, column] for column in (k.LARGEST, k.TOTAL, k.SQUARES)))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Weighted spread of the values of features over the rows: arrays with one element per feature that occurs.

    index     int64, increasing, as in FeatureStatistics
    largest   float64: largest absolute value, 0 where only rows of weight 0 have the feature
    mean, variance   float64, including the zeros of rows without the feature
    """

    index: np.ndarray
    largest: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def spread_of(data: Dataset) -> Spread:
    """From the statistics of features alone if they are accurate enough and no row has a weight, else by one or two more passes.

    Σx²/n − mean² cancels for values far from 0. Such features are summed again about one of their values, which makes constant
    ones exactly 0 (Chan, Golub & LeVeque 1983).
    """
    features, statistics = feature_statistics(data), data.manifest.statistics
    largest, total, squares, weight = features.largest, features.total, features.squares, float(statistics.n_rows)
    if statistics.weight_sum is not None:  # summed shard by shard
        (largest, total, squares, _), weight = _about(data, features.index, np.zeros(len(features.index)))
    mean = total / weight
    variance = squares / weight - mean * mean
    far = np.flatnonzero(variance <= _FAR * (squares / weight))
    if len(far) > 0:
        start = np.copysign(largest[far], total[far])
        (_, moved, squared, there), _ = _about(data, features.index[far], start)
        moved -= (weight - there) * start  # rows without the feature
        squared += (weight - there) * start * start
        mean[far] = start + moved / weight
        variance[far] = np.maximum(squared / weight - (moved / weight) ** 2, 0.0)
    return Spread(features.index, largest, mean, variance)


def in_order(total: float, values: np.ndarray) -> float:
    """total + Σ values, added in order: the same bits however the calls are split."""
    return float(np.cumsum(np.append(total, values))[-1])


def _about(data: Dataset, index: np.ndarray, about: np.ndarray) -> tuple[np.ndarray, float]:
    """float64 (4, k) of the features `index`, what streamcut.io.stores.structure.tally collects in a pass; and Σ u."""
    slots = np.full(data.manifest.statistics.n_features, -1, np.int64)
    slots[index] = np.arange(len(index))
    table, buffers, total = np.zeros((len(index), 4)), data.buffers(), 0.0
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        values = np.empty(0, np.int8) if chunk.data is None else chunk.data
        total = in_order(total, np.empty(0) if chunk.weight is None else chunk.weight)
        k.tally(chunk.indptr, chunk.indices, values, chunk.data is None, chunk.weight, 0, slots, about, table)
    return np.ascontiguousarray(table.T), total
