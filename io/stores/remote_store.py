"""Reading the native store behind a URL: one request per chunk, several in flight, each checked as on a disk.

A request costs a round trip regardless of its size, so a reader that waits for each would leave the connection idle. While
shards are decoded and processed, the next ones are on their way, as many as AHEAD_BYTES allow. Chunks may be cached on a local
disk, so that the second pass needs no requests:

FOLDER/CACHEDIR.TAG            marks the folder as a cache, for us and for backup programs
FOLDER/<fingerprint>/<chunk>   as received; its reader compares its checksum anyway

Chunks are never evicted: passes read all chunks cyclically, so a cache that evicts the oldest would never hold the next one.
Once its size is used up, the remaining chunks are fetched in every pass.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamcut.errors import IncompleteError, NotFoundError, UsageError
from streamcut.foundation.opened import read_file
from streamcut.foundation.units import parse_size
from streamcut.io.manifest import MAX_MANIFEST, Manifest, damaged, parse_manifest
from streamcut.io.remote import OBJECT_STORES, MissingError, answer, begun, get, no_bucket, objects_below, size_of
from streamcut.io.stores.buffers import ShardBuffers
from streamcut.io.stores.spec import JOURNAL, MANIFEST
from streamcut.io.stores.store import Store, fault

if TYPE_CHECKING:
    from obstore import Bytes

log = logging.getLogger(__name__)

FOLDER, SIZE = "STREAMCUT_CACHE_DIR", "STREAMCUT_CACHE_SIZE"  # environment variables, which workers inherit
_TAG, _SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n# chunks of streamcut stores\n"
_PART = 0.5  # fraction of the free space, when no size is given


class ChunkCache:
    """The chunks of the store with this fingerprint in `folder`, whose stores get `size` bytes together (None: half of the
    space now free, in addition to what they have).

    Raises UsageError for a folder that holds other files, NotFoundError when it cannot be made.
    """

    def __init__(self, folder: str | os.PathLike, size: int | None, fingerprint: str) -> None:
        self.folder = Path(folder)
        self._store = self.folder / fingerprint[:32]
        self._lock = threading.Lock()
        tag = self.folder / _TAG
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not tag.exists():
                if any(self.folder.iterdir()):
                    raise UsageError(f"STREAMCUT_CACHE_DIR: {self.folder}: holds other files; give an empty folder, or a new one")
                tag.write_bytes(_SIGNATURE)
            self._store.mkdir(exist_ok=True)
            used = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
            self._left = int(_PART * shutil.disk_usage(self.folder).free) if size is None else size - used
        except OSError as error:
            raise NotFoundError(f"STREAMCUT_CACHE_DIR: {self.folder}: {error.strerror}") from None

    @classmethod
    def of_environment(cls, fingerprint: str) -> ChunkCache | None:
        """The cache set by STREAMCUT_CACHE_DIR and STREAMCUT_CACHE_SIZE, if any."""
        folder, size = os.environ.get(FOLDER), os.environ.get(SIZE)
        return cls(folder, parse_size(size, option=SIZE) if size else None, fingerprint) if folder else None

    def get(self, name: str) -> bytes | None:
        """The chunk, None when it is not cached."""
        try:
            return read_file(self._path(name))
        except OSError:
            return None

    def has(self, name: str) -> bool:
        """Whether the chunk is cached."""
        return self._path(name).is_file()

    def put(self, name: str, content: Bytes) -> None:
        """Keep the chunk if it fits; errors are logged, not raised."""
        with self._lock:
            if self._left < len(content):
                if self._left >= 0:
                    what = "chunks that don't fit are fetched in every pass; raise STREAMCUT_CACHE_SIZE"
                    log.info("the cache %s is full: %s", self.folder, what)
                self._left = -1
                return
            self._left -= len(content)
        try:
            self._path(name).write_bytes(content)  # one that is not whole is not what its reader expects, and fetched again
        except OSError as error:
            log.warning("the cache %s takes no more: %s", self.folder, error.strerror or error)
            self._left = -1
            self.forget(name)

    def forget(self, name: str) -> None:
        """Remove a chunk that proved damaged."""
        with suppress(OSError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._store / name.replace("/", "-")


AHEAD_BYTES = 64 << 20  # of chunks in flight, or received and not yet used
_AGAIN = (None,) * 3  # requests after a body that came with another checksum


class RemoteStore(Store):
    """A store behind s3://, gs://, az://, https:// or memory://.

    cached   chunks may come from the local cache (STREAMCUT_CACHE_DIR)
    """

    def __init__(self, url: str, manifest: Manifest, cached: bool = False) -> None:
        super().__init__(url, manifest)
        self._cache = ChunkCache.of_environment(self.manifest.fingerprint) if cached else None
        self._sizes = [sum(length for _, length in self.files(shard)) for shard in range(len(self.manifest.shards))]
        self._largest = max(self._sizes, default=0)
        self._coming: dict[int, tuple[threading.Thread, dict[str, Future]]] = {}  # chunks by name, and who expects them
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple:
        return open_remote, (self.path, self._cache is not None)

    @property
    def held_bytes(self) -> int:
        return AHEAD_BYTES + self._largest

    def expect(self, *shards: int) -> None:
        """Begin to fetch as many of these shards as this thread's share of the memory allows, but at least the first; drop those
        that this thread, or one that has ended, no longer expects."""
        me = threading.current_thread()
        with self._lock:
            for shard, (owner, chunks) in list(self._coming.items()):
                if (owner is me and shard not in shards) or not owner.is_alive():
                    del self._coming[shard]
                    for chunk in chunks.values():
                        chunk.cancel()
            share = AHEAD_BYTES // len({me, *(owner for owner, _ in self._coming.values())})
            held = sum(self._sizes[shard] for shard in self._coming)
            for shard, total in zip(shards, accumulate(self._sizes[shard] for shard in shards), strict=True):
                fits = (total <= share or shard == shards[0]) and held + self._sizes[shard] <= self.held_bytes
                if shard not in self._coming and fits:
                    wanted = [file for file, _ in self.files(shard) if self._cache is None or not self._cache.has(file)]
                    self._coming[shard] = me, {file: begun(get, f"{self.path}/{file}") for file in wanted}
                    held += self._sizes[shard]

    def checked(self, name: str, length: int, crc: int, buffers: ShardBuffers | None = None, trailer: int = 0) -> np.ndarray:
        """As in Store, from the cache or the server; what comes with another checksum is asked for again."""
        where, coming = f"{self.path}/{name}", None
        with self._lock:
            for shard, (_, chunks) in list(self._coming.items()):
                coming = coming or chunks.pop(name, None)
                if not chunks:
                    del self._coming[shard]
        if self._cache is not None and coming is None and (kept := self._cache.get(name)) is not None:
            if fault(content := np.frombuffer(kept, np.uint8), length, crc, trailer) is None:
                return content
            self._cache.forget(name)  # a disk that rots
        for request in (coming, *_AGAIN):
            try:
                answered = answer(where, request or begun(get, where))
            except MissingError:
                raise damaged(where, "missing") from None
            if (what := fault(content := np.frombuffer(answered, np.uint8), length, crc, trailer)) is None:
                break
        else:
            raise damaged(where, str(what))
        if self._cache is not None:
            self._cache.put(name, answered)
        return content


def open_remote(url: str, cached: bool) -> RemoteStore:
    """The store at `url`. Raises as open_dataset does."""
    url = url.rstrip("/")
    where, in_bucket = f"{url}/{MANIFEST}", url.partition("://")[0] in OBJECT_STORES
    size = size_of(where)
    if size is None:
        if in_bucket and objects_below(f"{url}/{JOURNAL}"):
            what = "its conversion was never finished; run the same `streamcut convert` with --resume"
            raise IncompleteError(f"{url}: {what}, or without, to begin anew")
        if (error := no_bucket(url)) is not None:
            raise error
        if in_bucket and not objects_below(url):
            raise NotFoundError(f"{url}: there is nothing at this address; check the spelling")
        raise NotFoundError(f"{url}: has no {MANIFEST}, so it is not a streamcut store; make one with `streamcut convert`")
    if size > MAX_MANIFEST:
        raise damaged(where, f"is {size:,} bytes long, which no manifest is")
    manifest = parse_manifest(answer(where, begun(get, where)).to_bytes(), where)
    if manifest.backend != "zarr":
        raise NotFoundError(f"{url}: a store of {manifest.backend} files, which is read only from a disk; copy it there")
    return RemoteStore(url, manifest, cached)
