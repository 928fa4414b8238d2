"""Reading a local file whose length and checksum are known beforehand, into memory that is reused."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

import numpy as np

from streamcut.errors import CorruptError, NotFoundError
from streamcut.files import failpoint
from streamcut.io.stores.codec import crc32c

_RETRIES = 2
_PAUSE = 0.05  # seconds
_AHEAD = 128 << 10  # bytes: of a longer wish Linux may grant no more than that


def damaged(where: str | os.PathLike, what: str) -> CorruptError:
    """The error for a damaged `where`: what is wrong with it, and what to do."""
    return CorruptError(f"{where}: {what}; restore it from a copy, or convert the data again")


def read_exactly(path: str | os.PathLike, length: int, raw: np.ndarray) -> np.ndarray:
    """The `length` bytes of `path`, as a view of `raw` (uint8, large enough).

    A read that fails with EIO is tried again twice. Raises CorruptError when the file is missing, has another length or
    cannot be read, NotFoundError when it may not be read. Failpoint: store.read.
    """
    view = raw[:length]
    for attempt in range(_RETRIES + 1):
        try:
            _read(path, view)
            return view
        except FileNotFoundError:
            raise damaged(path, "missing") from None
        except PermissionError as error:
            raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
        except OSError as error:
            if error.errno != errno.EIO or attempt == _RETRIES:
                raise damaged(path, f"cannot be read ({error.strerror})") from error
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")


def _read(path: str | os.PathLike, view: np.ndarray) -> None:
    with open(path, "rb", buffering=0) as file:
        found = os.fstat(file.fileno()).st_size
        if found != len(view):
            raise damaged(path, f"is {found:,} bytes long, and should be {len(view):,}")
        rest = view.data
        while rest:
            failpoint("store.read")
            got = file.readinto(rest)
            if not got:
                raise damaged(path, "became shorter while it was read")
            rest = rest[got:]


def fetch_ahead(path: str | os.PathLike, length: int) -> None:
    """Ask the kernel to read `length` bytes of `path` into its cache, without waiting. What goes wrong shows when it is read."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for start in range(0, length, _AHEAD):
                os.posix_fadvise(handle, start, _AHEAD, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(handle)


def read_guarded(path: str | os.PathLike, guard: tuple[int, int], raw: np.ndarray | None = None) -> np.ndarray:
    """The content of `path`, whose (length, CRC-32C) must be `guard`; a view of `raw` if given. Errors as read_exactly."""
    length, crc = guard
    content = read_exactly(path, length, np.empty(length, np.uint8) if raw is None else raw)
    if crc32c(content) != crc:
        raise damaged(path, "does not have the checksum that the manifest states")
    return content
