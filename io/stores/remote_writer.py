"""Uploading the shards of a native store: one object per chunk, several in flight while the next are encoded."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from streamcut.foundation.files import failpoint
from streamcut.io.manifest import ShardInfo
from streamcut.io.places.remote import write_object
from streamcut.io.stores import zarr_layout
from streamcut.io.stores.codec import crc32c, encode, trailer
from streamcut.io.stores.spec import SHARDS, shard_name

UPLOAD_BYTES = 32 << 20  # of chunks in flight, or one that is larger
UPLOAD_HELD = 2 * UPLOAD_BYTES  # with the copies made by object store clients
_REQUESTS = 16  # at once


class RemoteWriter:
    """Shards below the URL `root`; calls for different shards may run at the same time."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._pool = ThreadPoolExecutor(_REQUESTS, "upload")
        self._changed = threading.Condition()
        self._held = 0  # bytes in flight
        self._uploads: dict[int, list[Future]] = {}  # of each shard
        self._documents: list[Future] = []

    def close(self) -> None:
        """Start no more uploads and wait for those in flight, so that none arrives after a later removal."""
        self._pool.shutdown(cancel_futures=True)

    def write_shard(self, shard: int, arrays: Iterable[tuple[str, np.ndarray]], rows: int) -> dict[str, tuple[int, int]]:
        """Begin to upload the arrays; returns {name: (stored_bytes, stored_crc32c)}. `arrived` waits for them."""
        guards, uploads = {}, self._uploads.setdefault(shard, [])
        for name, array in arrays:
            guards[name] = 0, 0
            if len(array):
                payload = encode(array)
                guards[name] = len(payload), crc32c(payload)
                content = b"".join((payload, trailer(guards[name][1])))
                del payload  # otherwise held while the next one is made
                uploads.append(self._upload(zarr_layout.chunk_name(shard, name), content))
                del content
            document = zarr_layout.array_document(array.dtype.name, len(array))
            uploads.append(self._upload(f"{_folder(shard)}/{name}/{zarr_layout.METADATA}", document))
        return guards

    def arrived(self, shard: int) -> None:
        """Wait for this writer's uploads of the shard; raises their errors."""
        for upload in self._uploads.pop(shard, []):
            upload.result()

    def finish_shard(self, shard: int, info: ShardInfo, n_features: int) -> ShardInfo:
        """Begin to upload the files that depend on the number of features."""
        failpoint("convert.shard_meta")
        documents = zarr_layout.shard_documents(info, n_features)
        self._documents.append(self._upload(f"{_folder(shard)}/{zarr_layout.METADATA}", documents[zarr_layout.METADATA]))
        return replace(info, files=zarr_layout.guards(documents))

    def files(self) -> dict[str, tuple[int, int]]:
        """(length, crc) of the files that `finish` will write."""
        return zarr_layout.guards(zarr_layout.store_documents())

    def finish(self) -> None:
        """Write the files above the shards, and wait for all uploads."""
        self._documents += [self._upload(path, content) for path, content in zarr_layout.store_documents().items()]
        for upload in self._documents:
            upload.result()

    def is_whole(self, shard: int, info: ShardInfo, there: Mapping[str, int]) -> bool:
        """Whether all objects of a journalled shard are `there` ({name: bytes}) with the right lengths."""
        lengths = {zarr_layout.chunk_name(shard, name): zarr_layout.chunk_length(array) for name, array in info.arrays.items()}
        return all(there.get(name) == length for name, length in lengths.items() if length)

    def keeps(self, name: str, shards: int) -> bool:
        """Whether an object belongs to one of the first `shards` shards."""
        match = re.match(rf"{SHARDS}/(\d+)/", name)
        return match is not None and int(match[1]) < shards

    def _upload(self, name: str, content: bytes) -> Future:
        """Begin an upload once memory is free for it."""
        size = len(content)
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + size <= UPLOAD_BYTES)
            self._held += size
        return self._pool.submit(self._put, name, content)

    def _put(self, name: str, content: bytes) -> None:
        try:
            write_object(f"{self.root}/{name}", content)
        finally:
            with self._changed:
                self._held -= len(content)
                self._changed.notify_all()


def _folder(shard: int) -> str:
    return f"{SHARDS}/{shard_name(shard)}"
