"""Reading the native store: a local Zarr v3 directory with our codecs, several times faster than zarr-python.

Each array is one file: check its length, read it into a reused buffer, check its checksum, decompress into a preallocated
array. Nothing is allocated and nothing is copied twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.codec import TRAILER, crc32c, decode, read_trailer
from streamcut.io.stores.guarded import damaged, read_exactly
from streamcut.io.stores.stored import StoredDataset
from streamcut.io.stores.zarr_layout import chunk_length, chunk_name, chunk_path


class ZarrStore(StoredDataset):
    """A store on a local disk, written by StoreWriter. Opened by `open_dataset`, which has checked the manifest."""

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        arrays = self.manifest.shards[shard].arrays
        for name, array in out.items():
            info = arrays[name]
            if not info.size:
                continue  # Zarr stores no chunk for an empty array
            content = self.content(shard, name, buffers.raw)
            path = chunk_path(str(self.path), shard, name)
            payload = content[:-TRAILER]
            crc = crc32c(payload)
            if crc != read_trailer(content[-TRAILER:]):
                raise damaged(path, "does not have the checksum at its end")
            if crc != info.stored_crc32c:
                raise damaged(path, "is sound, but not the file that the manifest describes")
            try:
                decode(payload, array)
            except ValueError as error:
                raise damaged(path, str(error)) from None

    def content(self, shard: int, name: str, raw: np.ndarray) -> np.ndarray:
        """The stored chunk of array `name`, uint8, of the right length; may be a view of `raw`."""
        length = chunk_length(self.manifest.shards[shard].arrays[name])
        return read_exactly(str(self.path), chunk_name(shard, name), length, raw)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        info = self.manifest.shards[shard]
        for name, array in info.arrays.items():
            if array.size and not (info.ones and name == "data"):
                yield chunk_name(shard, name), chunk_length(array)
