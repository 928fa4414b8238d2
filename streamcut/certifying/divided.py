"""Rows whose values are divided by given numbers as they are read, as a scaler in front of a model does."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.execution.scaled import ScaledDataset, scaled_shard
from streamcut.io.dataset import Dataset
from streamcut.io.features import feature_statistics
from streamcut.io.manifest import Manifest

GIVEN = "given"  # the scale of a model whose certificate is about divided rows
_LONGER = 1.0 + 1e-9  # squares of rows are added in float64


class DividedDataset(ScaledDataset):
    """The rows of `data` with values divided by `divisors`, float64 (n_features,), above 0."""

    def __init__(self, data: Dataset, divisors: np.ndarray) -> None:
        self.inner, self.scale, self.divisors = data, GIVEN, divisors
        self.path, self.recipe = data.path, data.recipe
        manifest, found = data.manifest, feature_statistics(data)
        largest = float((found.largest / divisors[found.index]).max(initial=0.0))
        longest = manifest.statistics.max_squared_norm / float(divisors.min(initial=1.0)) ** 2
        squares = _LONGER * min(longest, manifest.statistics.max_row_nnz * largest * largest)
        digest = hashlib.sha256(f"{manifest.fingerprint} given ".encode() + divisors.tobytes())
        statistics: Any = replace(manifest.statistics, max_abs_value=largest, max_squared_norm=squares)
        shards = tuple(scaled_shard(shard) for shard in manifest.shards)
        self.manifest = Manifest(statistics=statistics, shards=shards, fingerprint=digest.hexdigest(), backend="scaled")
