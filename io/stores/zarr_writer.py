"""Writing the shards of a native store, file by file, each durable before its name exists."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from streamcut.foundation.files import disk_full, failpoint, sync_directory, write_durably
from streamcut.io.manifest import ShardInfo
from streamcut.io.stores import zarr_layout
from streamcut.io.stores.codec import crc32c, encode, trailer
from streamcut.io.stores.spec import SHARDS


class ZarrWriter:
    """Shards below the directory `root`; calls for different shards may run at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write_shard(self, shard: int, arrays: Iterable[tuple[str, np.ndarray]], rows: int) -> dict[str, tuple[int, int]]:
        """Write the arrays; returns {name: (stored_bytes, stored_crc32c)}. Failpoints: convert.chunk_{tmp,fsync,rename}."""
        folder, guards = zarr_layout.shard_folder(self.root, shard), {}
        for name, array in arrays:
            place, guards[name] = folder / name, (0, 0)
            with disk_full(place):
                place.mkdir(parents=True, exist_ok=True)
            if len(array):
                payload = encode(array)
                guards[name] = len(payload), crc32c(payload)
                write_durably(
                    place / zarr_layout.CHUNK, payload, trailer(guards[name][1]), prefix="convert.chunk", sync_parent=False
                )
                del payload  # otherwise held while the next one is made
            document = zarr_layout.array_document(array.dtype.name, len(array))
            write_durably(place / zarr_layout.METADATA, document, prefix="convert.array_meta")
        sync_directory(folder)
        sync_directory(folder.parent)
        return guards

    def finish_shard(self, shard: int, info: ShardInfo, n_features: int) -> ShardInfo:
        """Write the files that depend on the number of features. Failpoint: convert.shard_meta."""
        failpoint("convert.shard_meta")
        documents = zarr_layout.shard_documents(info, n_features)
        path = zarr_layout.shard_folder(self.root, shard) / zarr_layout.METADATA
        write_durably(path, documents[zarr_layout.METADATA], prefix="convert.shard_meta")
        return replace(info, files=zarr_layout.guards(documents))

    def files(self) -> dict[str, tuple[int, int]]:
        """(length, crc) of the files that `finish` will write."""
        return zarr_layout.guards(zarr_layout.store_documents())

    def finish(self) -> None:
        """Write the files above the shards."""
        for path, content in zarr_layout.store_documents().items():
            write_durably(self.root / path, content, prefix="convert.root")

    def is_whole(self, shard: int, info: ShardInfo) -> bool:
        """Whether all files of a journalled shard exist with the right lengths."""
        lengths = {zarr_layout.chunk_path(self.root, shard, name): zarr_layout.chunk_length(a) for name, a in info.arrays.items()}
        return all(os.path.isfile(path) and os.path.getsize(path) == length for path, length in lengths.items() if length)

    def keep(self, shards: int) -> None:
        """Remove all but the first `shards` shards, and temporary files of dead writers among those."""
        folder = self.root / SHARDS
        kept = {zarr_layout.shard_folder(self.root, shard).name for shard in range(shards)}
        for place in folder.iterdir() if folder.is_dir() else ():
            if place.is_dir() and place.name not in kept:
                shutil.rmtree(place)
        remove_temporaries(self.root)


def remove_temporaries(root: Path) -> None:
    """Delete the temporary files of dead writers (see write_durably) below `root`."""
    for path in root.rglob(".*.tmp"):
        path.unlink()
