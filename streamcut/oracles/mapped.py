"""A data set whose rows are mapped to kernel features on reading."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, View
from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo
from streamcut.io.stores.spec import SHARD_NNZ
from streamcut.kernels.maps import FeatureMap

_ABOVE = 1.01  # generous allowance for rounding in the projection


@dataclass(slots=True)
class _Buffers:
    """Buffers of the underlying data set, and the shards that they hold."""

    inner: Any
    shard: int = -1
    rows: Chunk | None = None


class MappedDataset(View):
    """`data` with the features of `map`. Its shards are parts of those of `data`, so that dense rows do not make them huge."""

    def __init__(self, data: Dataset, feature_map: FeatureMap) -> None:
        super().__init__(data)
        self.map = feature_map
        r, manifest = feature_map.n_features, data.manifest
        at_once = max(1, SHARD_NNZ // r)
        self._parts = [
            (number, start, min(start + at_once, shard.rows))
            for number, shard in enumerate(manifest.shards)
            for start in range(0, shard.rows, at_once)
        ]
        squared = _ABOVE * float(feature_map.kernel.diagonal(np.array([manifest.statistics.max_squared_norm]))[0])
        identity = {"map": feature_map.kind, "kernel": feature_map.kernel.as_dict(), **feature_map.identity}
        digest = hashlib.sha256(json.dumps([manifest.fingerprint, identity], sort_keys=True).encode())
        self.manifest = Manifest(
            statistics=replace(
                manifest.statistics,
                n_features=r,
                nnz=r * manifest.statistics.n_rows,
                max_abs_value=float(np.sqrt(squared)),
                max_squared_norm=squared,
                max_row_nnz=r,
            ),
            shards=tuple(_shard(stop - start, r, manifest) for _, start, stop in self._parts),
            fingerprint=digest.hexdigest(),
            backend=feature_map.kind,
        )

    def buffers(self) -> _Buffers:
        return _Buffers(self.inner.buffers())

    def read(self, shard: int, buffers: _Buffers | None = None) -> Chunk:
        number, start, stop = self._parts[shard]
        if buffers is None:
            return self.map.mapped(self.inner.read(number).rows(start, stop))
        if buffers.shard != number or buffers.rows is None:
            buffers.rows = self.inner.read(number, buffers.inner)
            buffers.shard = number
        return self.map.mapped(buffers.rows.rows(start, stop))

    def expect(self, *shards: int) -> None:
        here = self._parts[shards[0] - 1][0] if shards and shards[0] > 0 else -1  # whose last part was read before
        self.inner.expect(*dict.fromkeys(number for shard in shards if (number := self._parts[shard][0]) != here))


def _shard(rows: int, r: int, manifest: Manifest) -> ShardInfo:
    """The record of a shard of `rows` rows with r features."""
    sizes = {"data": ("float32", rows * r), "indices": ("int32", rows * r), "indptr": ("int64", rows + 1), "y": ("float64", rows)}
    sizes |= {"qid": ("int64", rows)} if manifest.statistics.groups is not None else {}
    sizes |= {"weight": ("float64", rows)} if manifest.statistics.weight_sum is not None else {}
    return ShardInfo(rows, rows * r, False, {name: ArrayInfo(dtype, size, 0) for name, (dtype, size) in sizes.items()})
