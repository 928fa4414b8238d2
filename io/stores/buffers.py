"""Memory that one thread reuses: no allocation per shard, so no page faults and a constant peak."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike

from streamcut.io.manifest import Manifest
from streamcut.io.stores.spec import TRAILER

WIDE = {"indptr": "int64", "y": "float64", "weight": "float64"}  # returned as these types, regardless of the stored type


class ShardBuffers:
    """Arrays by name, each as large as the largest that was asked for; they are valid until their next use.

    sizes   bytes to begin with: an array that grows leaves holes in the memory of the process
    """

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self._bytes = {name: np.empty(size, np.uint8) for name, size in (sizes or {}).items()}

    def array(self, name: str, dtype: DTypeLike, size: int) -> np.ndarray:
        needed = size * np.dtype(dtype).itemsize
        if name not in self._bytes or len(self._bytes[name]) < needed:
            self._bytes.pop(name, None)  # its memory is free before the larger is taken
            self._bytes[name] = np.empty(needed, np.uint8)
        return self._bytes[name][:needed].view(dtype)

    def widened(self, name: str, stored: np.ndarray) -> np.ndarray:
        """Array `name` of a shard as the type in WIDE."""
        if stored.dtype == WIDE[name]:
            return stored
        wide = self.array(f"{name} wide", WIDE[name], len(stored))
        np.copyto(wide, stored)
        return wide


def buffer_bytes(manifest: Manifest) -> int:
    """Bytes of one ShardBuffers for all shards of a stored data set."""
    return sum(largest(manifest).values())


def largest(manifest: Manifest) -> dict[str, int]:
    """{array: bytes} in a ShardBuffers for all shards of a stored data set; "raw": files before they are decoded."""
    sizes = {"raw": 0}

    def add(name: str, size: int) -> None:
        sizes[name] = max(sizes.get(name, 0), size)

    for shard in manifest.shards:
        add("raw", max([0, *(length for length, _ in shard.files.values())]))
        for name, info in shard.arrays.items():
            if not (name == "data" and shard.ones):
                add("raw", info.stored_bytes + TRAILER)
                add(name, info.size * np.dtype(info.dtype).itemsize)
                add(f"{name} wide", info.size * 8 * (name in WIDE and info.dtype != WIDE[name]))
    return sizes
