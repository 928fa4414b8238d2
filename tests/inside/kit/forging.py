"""Stores that are wrong on purpose, with checksums to match: what somebody hostile could hand over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from streamcut.io.manifest import ShardInfo, fingerprint, manifest_bytes, read_manifest
from streamcut.io.stores.zarr_layout import crc32c, encode, trailer


def forge(store: Path, shard: int, arrays: dict[str, np.ndarray]) -> None:
    """Replace arrays of a native store's shard with checksums, manifest and fingerprint to match."""
    manifest = read_manifest(store / "manifest.json")
    info = manifest.shards[shard]
    forged = dict(info.arrays)
    for name, array in arrays.items():
        payload = encode(array)
        crc = crc32c(payload)
        (store / f"shards/{shard:06d}/{name}/c.0").write_bytes(payload + trailer(crc))
        forged[name] = replace(
            forged[name],
            content_crc32c=crc32c(array),
            stored_bytes=len(payload),
            stored_crc32c=crc,
            dtype=array.dtype.name,
        )
    shards = list(manifest.shards)
    shards[shard] = ShardInfo(info.rows, info.nnz, info.ones, forged, info.files)
    manifest = replace(manifest, shards=tuple(shards), fingerprint=fingerprint(manifest.statistics.n_features, shards))
    (store / "manifest.json").write_bytes(manifest_bytes(manifest))
