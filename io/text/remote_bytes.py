"""The bytes of an object behind a URL: at any position, or front to back with several pieces on their way."""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import Future
from typing import Any

from streamcut.errors import BadInputError, NotFoundError
from streamcut.io.places.remote import MissingError, ReplacedError, about, answer, begun, get, missing

_PIECE = 4 << 20
_AHEAD = 8  # pieces received or in flight
AHEAD_BYTES = (_AHEAD + 1) * _PIECE


class RemoteFile(io.RawIOBase):
    """A file of `size` bytes, read at any position: one request per read. Raises NotFoundError; BadInputError if replaced."""

    ahead = 0

    def __init__(self, url: str) -> None:
        try:
            known = about(url)
        except MissingError:
            raise missing(url) from None
        self._url, self.size, self._tag, self._position = url, known["size"], known.get("e_tag"), 0
        self._coming: deque[Future[bytes]] = deque()
        self._asked, self._piece = 0, memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = self._asked = min(max(start + offset, 0), self.size)
        self._forget()
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, target: Any) -> int:
        if not self._piece:
            size = _PIECE if self.ahead else len(target)
            while len(self._coming) <= self.ahead and self._asked < self.size:
                stop = min(self._asked + size, self.size)
                self._coming.append(begun(get, self._url, self._asked, stop, self._tag))
                self._asked = stop
            if not self._coming:
                return 0
            self._piece = memoryview(self._received(self._coming.popleft()))
        count = min(len(target), len(self._piece))
        target[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        self._position += count
        return count

    def _received(self, coming: Future[bytes]) -> bytes:
        try:
            return answer(self._url, coming)
        except MissingError:
            raise NotFoundError(f"{self._url}: was removed while it was read") from None
        except ReplacedError:
            what = "was replaced while it was read; convert it again once it stops changing"
            raise BadInputError(f"{self._url}: {what}") from None

    def close(self) -> None:
        self._forget()
        super().close()

    def _forget(self) -> None:
        for future in self._coming:
            future.cancel()
        self._coming.clear()
        self._piece = memoryview(b"")


class RemoteBytes(RemoteFile):
    """A RemoteFile read front to back, with prefetching."""

    ahead = _AHEAD - 1
