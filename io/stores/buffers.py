"""Memory that one reading thread reuses: no allocation per shard, so no page faults and a constant peak."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo
from streamcut.io.stores.spec import TRAILER

_WIDE = {"indptr": "int64", "y": "float64", "weight": "float64"}  # returned as these types, regardless of the stored type


class Buffers:
    """Memory for the largest of `shards`.

    raw   uint8: file contents before they are decoded
    """

    def __init__(self, shards: Iterable[ShardInfo]) -> None:
        raw, room = _sizes(shards)
        self.raw = np.empty(raw, np.uint8)
        self._room = {name: np.empty(size, np.uint8) for name, size in room.items()}

    def stored(self, name: str, info: ArrayInfo) -> np.ndarray:
        """A view to decode array `name` into, with its stored dtype."""
        return self._view(name, info.dtype, info.size)

    def widened(self, name: str, stored: np.ndarray) -> np.ndarray:
        """Widen `stored`, a view returned by `stored()`: indptr to int64, y and weight to float64."""
        if stored.dtype == _WIDE[name]:
            return stored
        wide = self._view(name + " wide", _WIDE[name], len(stored))
        np.copyto(wide, stored)
        return wide

    def _view(self, name: str, dtype: str, size: int) -> np.ndarray:
        return self._room[name][: size * np.dtype(dtype).itemsize].view(dtype)


def buffer_bytes(manifest: Manifest) -> int:
    """Bytes that one `Buffers` for all shards of a stored data set occupies."""
    raw, room = _sizes(manifest.shards)
    return raw + sum(room.values())


def _sizes(shards: Iterable[ShardInfo]) -> tuple[int, dict[str, int]]:
    """(bytes of the longest file, {buffer: bytes})."""
    raw = 0
    room: dict[str, int] = {}
    for shard in shards:
        raw = max([raw, *(length for length, _ in shard.files.values())])
        for name, info in shard.arrays.items():
            if name == "data" and shard.ones:
                continue
            raw = max(raw, info.stored_bytes + TRAILER)
            room[name] = max(room.get(name, 0), info.size * np.dtype(info.dtype).itemsize)
            if name in _WIDE and info.dtype != _WIDE[name]:
                room[name + " wide"] = max(room.get(name + " wide", 0), info.size * 8)
    return raw, room
