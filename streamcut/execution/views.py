"""Data sets as training sees them: features divided by their sizes, and without those that no row has. Nothing is rewritten.

Divisors are those of scikit-learn's MaxAbsScaler and StandardScaler(with_mean=False): nothing is centred, zeros stay zeros. They
count rows by weight, and are the same wherever they are computed (streamcut.io.features).

Hashing leaves most of 2²² features unused, as does a wide dictionary on part of the data. Weights of features that do not occur
are 0 for any loss, and so are their sums: weights, cuts and sums have elements for occurring features only; models get all
features back at the end. The order of features is kept.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import numpy as np

from streamcut.config import SCALES
from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, View
from streamcut.io.features import FeatureStatistics, Spread, feature_statistics, spread_of
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import RowView
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.io.stores.spec import FEATURES
from streamcut.problem import Problem

LEAST, MOST = 1 << 16, 1 << 26  # features: with fewer there is nothing to save; with more the index map alone takes too much
log = logging.getLogger(__name__)
_EPSILON = 2.0**-52
_LONGER = 1.0 + 1e-9  # squares of rows are summed in float64


class ScaledDataset(View):
    """The rows of `data` with values divided by `divisors`, float64 (n_features,), as `scale` defines them; or `by` others."""

    def __init__(self, data: Dataset, scale: str, by: np.ndarray | None = None) -> None:
        super().__init__(data)
        manifest, statistics = data.manifest, data.manifest.statistics
        whole = by is not None or statistics.weight_sum is not None  # the largest values of all rows, those of weight 0, too
        if by is None:
            by = divisors(spread := spread_of(data), scale, statistics.n_rows, statistics.n_features)
        everything: FeatureStatistics | Spread = feature_statistics(data) if whole else spread
        self.scale, self.divisors = scale, by
        largest = float((everything.largest / by[everything.index]).max(initial=0.0))
        longest = manifest.statistics.max_squared_norm / float(by.min(initial=1.0)) ** 2
        digest = hashlib.sha256(f"{manifest.fingerprint} {scale} ".encode() + by.tobytes())
        self.manifest = Manifest(
            statistics=replace(
                manifest.statistics,
                max_abs_value=largest,
                max_squared_norm=_LONGER * min(longest, manifest.statistics.max_row_nnz * largest * largest),
            ),
            shards=tuple(scaled_shard(shard) for shard in manifest.shards),
            fingerprint=digest.hexdigest(),
            backend="scaled",
        )

    def read(self, shard: int, buffers: object = None) -> Chunk:
        rows = self.inner.read(shard, buffers)
        first, last = int(rows.indptr[0]), int(rows.indptr[-1])  # rows in memory are slices of larger arrays
        indices = rows.indices[first:last]
        by = self.divisors[indices]
        np.divide(1.0 if rows.data is None else rows.data[first:last], by, out=by)
        return replace(rows, indptr=rows.indptr - first if first else rows.indptr, indices=indices, data=by)

    def memory(self, workers: int) -> tuple[tuple[str, int], ...]:
        """Memory that scaling takes in addition to the row buffers: (what, bytes)."""
        behind = 0 if self.inner.manifest.backend == "memory" else buffer_bytes(self.inner.manifest)
        values = 8 * max((shard.nnz for shard in self.manifest.shards), default=0)  # allocated while the previous one exists
        what = f"divisors of features, values that {workers} workers scale"
        return ((what, self.divisors.nbytes + workers * (behind + 2 * values)),)


def divisors(spread: Spread, scale: str, rows: int, n_features: int) -> np.ndarray:
    """The divisor of each feature, float64 (n_features,): 1 where it would be 0.

    "max-abs": the largest absolute value. "std": the standard deviation, zeros included. A feature keeps its values where it is
    constant up to the rounding of sums over `rows` rows, by scikit-learn's rule; this is logged where it does vary.
    """
    out = np.ones(n_features)
    if scale == "max-abs":
        there = spread.largest > 0.0
        out[spread.index[there]] = spread.largest[there]
        return out
    noise = rows * _EPSILON * spread.variance + (rows * _EPSILON * spread.mean) ** 2
    varies = spread.variance > noise
    out[spread.index[varies]] = np.sqrt(spread.variance[varies])
    left = spread.index[~varies & (spread.variance > 0.0)]
    if len(left) > 0:
        some = ", ".join(map(str, left[:5].tolist())) + ", …" * (len(left) > 5)
        log.warning("scale: %d features vary by no more than rounding and keep their values: %s (0-based)", len(left), some)
    return out


def as_trained(
    problem: Problem, data: Dataset, n_features: int, fingerprint: str | None = None
) -> tuple[Dataset, np.ndarray | None]:  # fmt: skip
    """`data` scaled as `problem` says, and the divisors of its first features, float64 (n_features,); None: nothing is divided.

    Raises UsageError for the scaler of another program, and for rows of another `fingerprint`, if there is one.
    """
    if problem.scale not in SCALES:
        raise UsageError("a scaler of another program divided the features; certify the last step of its pipeline")
    rows = scaled(data, problem.scale)
    if fingerprint is not None and rows.manifest.fingerprint != fingerprint:
        raise UsageError("these are not the rows that the model was trained on (fingerprints differ)")
    return rows, np.append(rows.divisors, np.ones(n_features))[:n_features] if isinstance(rows, ScaledDataset) else None


def scaled(data: Dataset, scale: str) -> Dataset:
    """`data` as the option `scale` requires."""
    return ScaledDataset(data, scale) if scale != SCALES[0] else data


def scaled_shard(shard: ShardInfo) -> ShardInfo:
    """The record of a shard whose values are float64."""
    arrays = dict(shard.arrays)
    arrays["data"] = replace(arrays["data"], dtype="float64", size=shard.nnz)
    return replace(shard, ones=False, arrays=arrays)


class OccurringDataset(View):
    """The rows of `data` with its features `index` (int32, increasing) alone, counted from 0; all others are 0 in every row."""

    def __init__(self, data: Dataset, index: np.ndarray) -> None:
        super().__init__(data)
        self.index = index
        n_features = data.manifest.statistics.n_features
        self._position = np.zeros(n_features, np.int32)  # features not in `index` have value 0, so any position will do
        self._position[index] = np.arange(len(index), dtype=np.int32)
        np.maximum.accumulate(self._position, out=self._position)  # indices of a row stay in order
        statistics = replace(data.manifest.statistics, n_features=len(index))
        self.manifest = replace(data.manifest, statistics=statistics, extras={})  # the same problem: the fingerprint stays

    def read(self, shard: int, buffers: object = None) -> Chunk:
        rows = self.inner.read(shard, buffers)
        first, last = int(rows.indptr[0]), int(rows.indptr[-1])  # rows in memory are slices of larger arrays
        data = None if rows.data is None else rows.data[first:last]
        indptr = rows.indptr - first if first else rows.indptr
        return replace(rows, indptr=indptr, indices=self._position[rows.indices[first:last]], data=data)

    def memory(self, workers: int, columns: int) -> tuple[tuple[str, int], ...]:
        """Memory it will take, the final model included, in addition to row buffers and what it already has: (what, bytes)."""
        indices = 4 * max((shard.nnz for shard in self.manifest.shards), default=0)  # allocated while the previous one exists
        model = (2 * 8 + 1) * columns * len(self._position)  # weights and dual point, and the mask of nonzeros
        what = f"indices of {workers} workers, model of {len(self._position):,} features, of which {len(self.index):,} occur"
        return ((what, workers * 2 * indices + model),)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Spread float64 values (occurring features, further elements, …) over all features; others get 0."""
        count = len(self.index)
        out = np.zeros((len(self._position) + len(values) - count, *values.shape[1:]))
        out[self.index] = values[:count]
        out[len(self._position) :] = values[count:]
        return out


def occurring(data: Dataset) -> Dataset:
    """`data` without features that do not occur, where it is known which do and they are at most half."""
    inner = data
    while isinstance(inner, ScaledDataset | RowView):  # neither adds nor removes a feature
        inner = inner.inner
    n_features = inner.manifest.statistics.n_features
    if not LEAST <= n_features <= MOST or not (FEATURES in inner.manifest.extras or isinstance(inner, MemoryDataset)):
        return data
    index = feature_statistics(inner).index
    return OccurringDataset(data, index.astype(np.int32)) if 0 < 2 * len(index) <= n_features else data
