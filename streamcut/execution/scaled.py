"""A data set whose values are divided by a per-feature divisor as they are read; nothing is rewritten.

The divisors are those of scikit-learn's MaxAbsScaler and StandardScaler(with_mean=False): nothing is centred, zeros stay zeros.
They count rows by weight, and are the same wherever they are computed (streamcut.io.features).
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.config import SCALES
from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, View
from streamcut.io.features import Spread, feature_statistics, spread_of
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.problem import Problem

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
            by = divisors(found := spread_of(data), scale, statistics.n_rows, statistics.n_features)
        everything: Any = feature_statistics(data) if whole else found
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

    def read(self, shard: int, buffers: Any = None) -> Chunk:
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


def divisors(found: Spread, scale: str, rows: int, n_features: int) -> np.ndarray:
    """The divisor of each feature, float64 (n_features,): 1 where it would be 0.

    "max-abs": the largest absolute value. "std": the standard deviation, zeros included. A feature keeps its values where it is
    constant up to the rounding of sums over `rows` rows, by scikit-learn's rule; this is logged where it does vary.
    """
    out = np.ones(n_features)
    if scale == "max-abs":
        there = found.largest > 0.0
        out[found.index[there]] = found.largest[there]
        return out
    noise = rows * _EPSILON * found.variance + (rows * _EPSILON * found.mean) ** 2
    varies = found.variance > noise
    out[found.index[varies]] = np.sqrt(found.variance[varies])
    left = found.index[~varies & (found.variance > 0.0)]
    if len(left) > 0:
        some = ", ".join(map(str, left[:5].tolist())) + ", …" * (len(left) > 5)
        log.warning("scale: %d features vary by no more than rounding and keep their values: %s (0-based)", len(left), some)
    return out


def as_trained(problem: Problem, data: Dataset, n_features: int) -> tuple[Dataset, np.ndarray | None]:
    """`data` scaled as `problem` says, and the divisors of its first features, float64 (n_features,); None: nothing is divided.

    Raises UsageError for the scaler of another program.
    """
    if problem.scale not in SCALES:
        raise UsageError("a scaler of another program divided the features; certify the last step of its pipeline")
    if problem.scale == "none":
        return data, None
    found = ScaledDataset(data, problem.scale)
    return found, np.append(found.divisors, np.ones(n_features))[:n_features]


def scaled(data: Dataset, scale: str) -> Dataset:
    """`data` as the option `scale` requires."""
    return ScaledDataset(data, scale) if scale != SCALES[0] else data


def scaled_shard(shard: ShardInfo) -> ShardInfo:
    """The record of a shard whose values are float64."""
    arrays = dict(shard.arrays)
    arrays["data"] = replace(arrays["data"], dtype="float64", size=shard.nnz)
    return replace(shard, ones=False, arrays=arrays)
