"""A data set whose values are divided by a number for each feature when they are read; nothing is written anew.

The divisors are scikit-learn's of MaxAbsScaler and of StandardScaler(with_mean=False): nothing is centred, so zeros stay zeros.
They come from the statistics of features that stores keep (streamcut.io.features), and are the same wherever they are made.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.config import SCALES
from streamcut.io.dataset import Dataset, ShownDataset
from streamcut.io.features import FeatureStatistics, feature_statistics
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.stores.buffers import buffer_bytes

_EPSILON = 2.0**-52
_LONGER = 1.0 + 1e-9  # squares of rows are added in float64


class ScaledDataset(ShownDataset):
    """The rows of `data` with values divided by `divisors`, float64 (n_features,), which are those of `scale`."""

    def __init__(self, data: Dataset, scale: str) -> None:
        self.inner, self.scale = data, scale
        self.path, self.recipe = data.path, data.recipe
        manifest = data.manifest
        n, statistics = manifest.statistics.n_rows, feature_statistics(data)
        self.divisors = divisors(statistics, scale, n, manifest.statistics.n_features)
        largest = float((statistics.largest / self.divisors[statistics.index]).max(initial=0.0))
        longest = manifest.statistics.max_squared_norm / float(self.divisors.min(initial=1.0)) ** 2
        digest = hashlib.sha256(f"{manifest.fingerprint} {scale} ".encode() + self.divisors.tobytes())
        self.manifest = Manifest(
            statistics=replace(
                manifest.statistics,
                max_abs_value=largest,
                max_squared_norm=_LONGER * min(longest, manifest.statistics.max_row_nnz * largest * largest),
            ),
            shards=tuple(_shard(shard) for shard in manifest.shards),
            fingerprint=digest.hexdigest(),
            backend="scaled",
        )

    def buffers(self) -> Any:
        return self.inner.buffers()

    def read(self, shard: int, buffers: Any = None) -> Chunk:
        rows = self.inner.read(shard, buffers)
        first, last = int(rows.indptr[0]), int(rows.indptr[-1])  # rows in memory are a part of larger arrays
        indices = rows.indices[first:last]
        by = self.divisors[indices]
        np.divide(1.0 if rows.data is None else rows.data[first:last], by, out=by)
        return replace(rows, indptr=rows.indptr - first if first else rows.indptr, indices=indices, data=by)

    def expect(self, *shards: int) -> None:
        self.inner.expect(*shards)

    def memory(self, workers: int) -> tuple[tuple[str, int], ...]:
        """What scaling takes beside the buffers of rows: (what, bytes)."""
        behind = 0 if self.inner.manifest.backend == "memory" else buffer_bytes(self.inner.manifest)
        values = 8 * max((shard.nnz for shard in self.manifest.shards), default=0)  # new memory while the last is there
        what = f"divisors of features, values that {workers} workers scale"
        return ((what, self.divisors.nbytes + workers * (behind + 2 * values)),)


def divisors(found: FeatureStatistics, scale: str, rows: int, n_features: int) -> np.ndarray:
    """What the values of each feature are divided by, float64 (n_features,): 1 where that would be 0.

    "max-abs": the largest absolute value. "std": the standard deviation over all `rows`, zeros included; a feature that is
    constant but for rounding keeps its values.
    """
    out = np.ones(n_features)
    if scale == "max-abs":
        out[found.index] = found.largest
    else:
        mean, square = found.total / rows, found.squares / rows
        variance = square - mean * mean
        varies = variance > 8.0 * rows * _EPSILON * square
        out[found.index[varies]] = np.sqrt(variance[varies])
    return out


def scaled(data: Dataset, scale: str) -> Dataset:
    """`data` as the option `scale` wants it."""
    return ScaledDataset(data, scale) if scale != SCALES[0] else data


def _shard(shard: ShardInfo) -> ShardInfo:
    """What a shard with float64 values holds."""
    arrays = dict(shard.arrays)
    arrays["data"] = replace(arrays["data"], dtype="float64", size=shard.nnz)
    return replace(shard, ones=False, arrays=arrays)
