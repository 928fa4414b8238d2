"""Chunks of remote stores cached on a local disk, so that the second pass needs no requests.

FOLDER/CACHEDIR.TAG            marks the folder as a cache, for us and for backup programs
FOLDER/<fingerprint>/<chunk>   as received; its reader compares its checksum anyway

Chunks are never evicted: passes read all chunks cyclically, so a cache that evicts the oldest would never hold the next one.
Once `size` is used up, the remaining chunks are fetched in every pass.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.opened import read_file
from streamcut.foundation.units import parse_size

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
            used = sum(each.stat().st_size for each in self.folder.rglob("*") if each.is_file())
            self._left = int(_PART * shutil.disk_usage(self.folder).free) if size is None else size - used
        except OSError as error:
            raise NotFoundError(f"STREAMCUT_CACHE_DIR: {self.folder}: {error.strerror}") from None

    @classmethod
    def of_environment(cls, fingerprint: str) -> ChunkCache | None:
        """The cache set by STREAMCUT_CACHE_DIR and STREAMCUT_CACHE_SIZE, if any."""
        folder, size = os.environ.get(FOLDER), os.environ.get(SIZE)
        return cls(folder, parse_size(size, option=SIZE) if size else None, fingerprint) if folder else None

    def get(self, name: str, length: int) -> bytes | None:
        """The chunk, None when it is not cached."""
        try:
            content = read_file(self._place(name))
        except OSError:
            return None
        if len(content) == length:
            return content
        self.forget(name)
        return None

    def has(self, name: str) -> bool:
        """Whether the chunk is cached."""
        return self._place(name).is_file()

    def put(self, name: str, content: bytes) -> None:
        """Keep the chunk if it fits; errors are logged, not raised."""
        with self._lock:
            if self._left < len(content):
                if self._left >= 0:
                    what = "chunks that don't fit are fetched in every pass; raise STREAMCUT_CACHE_SIZE"
                    log.info("the cache %s is full: %s", self.folder, what)
                self._left = -1
                return
            self._left -= len(content)
        place = self._place(name)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            temporary.write_bytes(content)  # not synced: a chunk damaged by a power loss is fetched again
            os.replace(temporary, place)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            log.warning("the cache %s takes no more: %s", self.folder, error.strerror or error)
            self._left = -1

    def forget(self, name: str) -> None:
        """Remove a chunk that proved damaged."""
        with suppress(OSError):
            self._place(name).unlink()

    def _place(self, name: str) -> Path:
        return self._store / name.replace("/", "-")
