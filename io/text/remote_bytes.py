"""The bytes of an object behind a URL: front to back, with several pieces prefetched during parsing; or at any position."""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import Future
from typing import Any

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.interrupts import result_of
from streamcut.io.places.answers import Fetchers, ask
from streamcut.io.places.remote import MissingError, file_system, missing, retried

_PIECE = 4 << 20
_AHEAD = 8  # pieces received or in flight
AHEAD_BYTES = (_AHEAD + 1) * _PIECE
_VERSION = ("size", "ETag", "etag", "LastModified", "last_modified", "updated", "created", "mtime")


class RemoteFile(io.RawIOBase):
    """A file of `size` bytes, read at any position: one request per read. Raises NotFoundError."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._files, self._path = file_system(url)
        self._version = self._about()
        size = self._version["size"]
        if size is None:
            raise NotFoundError(f"{url}: the server does not report its length; copy it to a disk")
        self.size: int = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = min(max(start + offset, 0), self.size)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, target: Any) -> int:
        count = min(len(target), self.size - self._position)
        if count:
            target[:count] = self._fetch(self._position, self._position + count)
            self._position += count
        return count

    def _fetch(self, start: int, stop: int) -> bytes:
        def get() -> bytes:
            content = ask(self._files, "cat_file", self._path, start=start, end=stop, size=stop - start)
            if len(content) != stop - start:
                raise OSError(f"{len(content):,} of {stop - start:,} bytes received")
            return content

        try:
            return retried(self._url, get, doing="read")
        except MissingError:
            raise NotFoundError(f"{self._url}: was removed while it was read") from None

    def _about(self) -> dict[str, Any]:
        """The metadata that changes when the object is replaced."""
        try:
            found = retried(self._url, lambda: ask(self._files, "info", self._path), doing="read")
        except MissingError:
            raise missing(self._url) from None
        return {"size": found.get("size"), **{name: found[name] for name in _VERSION if name in found}}


class RemoteBytes(RemoteFile):
    """A RemoteFile read front to back, with prefetching. Also raises BadInputError when the object was replaced meanwhile."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._pool = Fetchers(_AHEAD)
        self._coming: deque[Future[bytes]] = deque()
        self._asked = 0  # bytes requested so far
        self._piece = memoryview(b"")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._forget()
        self._asked = super().seek(offset, whence)
        return self._asked

    def readinto(self, target: Any) -> int:
        if not self._piece:
            self._ask()
            if not self._coming:
                if self._about() != self._version:
                    raise BadInputError(f"{self._url}: was replaced while it was read; convert it again once it stops changing")
                return 0
            self._piece = memoryview(result_of(self._coming.popleft()))
            self._ask()
        count = min(len(target), len(self._piece))
        target[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        self._position += count
        return count

    def close(self) -> None:
        if not self.closed:
            self._forget()
            self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _ask(self) -> None:
        while len(self._coming) < _AHEAD and self._asked < self.size:
            start, stop = self._asked, min(self._asked + _PIECE, self.size)
            self._coming.append(self._pool.submit(self._fetch, start, stop))
            self._asked = stop

    def _forget(self) -> None:
        for future in self._coming:
            future.cancel()
        self._coming.clear()
        self._piece = memoryview(b"")
