"""Reading a local file of known length and checksum into reused memory."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation import systems
from streamcut.foundation.files import failpoint
from streamcut.foundation.opened import IrregularFileError, open_regular
from streamcut.io.stores.codec import crc32c

_RETRIES = 2
_PAUSE = 0.05  # seconds
_AHEAD = 128 << 10  # bytes: Linux may truncate longer readahead requests to this


def damaged(where: str | os.PathLike, what: str) -> CorruptError:
    """The error for a damaged `where`: the fault and the remedy."""
    return CorruptError(f"{where}: {what}; restore it from a copy, or convert the data again")


def read_exactly(root: str | os.PathLike, name: str, length: int, raw: np.ndarray | None) -> np.ndarray:
    """The `length` bytes of the file `name` ("a/b") of the store `root`, as a view of `raw` (uint8, large enough) if given.

    A read that fails with EIO is retried twice. Raises CorruptError when the file is missing, not a regular file, unreadable or
    of another length, NotFoundError without permission to read it. Failpoint: store.read.
    """
    path = f"{os.fspath(root)}/{name}"
    for attempt in range(_RETRIES + 1):
        try:
            return _read(path, length, raw)
        except NotFoundError:  # an OSError, too
            raise
        except OSError as error:
            if error.errno != errno.EIO or attempt == _RETRIES:
                raise damaged(path, f"cannot be read ({error.strerror})") from error
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")


def _read(path: str, length: int, raw: np.ndarray | None) -> np.ndarray:
    with _opened(path, length) as handle:
        view = np.empty(length, np.uint8) if raw is None else raw[:length]
        rest = view.data
        while rest:
            failpoint("store.read")
            got = os.readv(handle, [rest])
            if not got:
                raise damaged(path, "became shorter while it was read")
            rest = rest[got:]
    return view


@contextmanager
def _opened(path: str, length: int) -> Iterator[int]:
    """A descriptor of a store's file of this length. Raises as read_exactly does."""
    try:
        handle = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        raise damaged(path, "missing") from None
    except PermissionError as error:
        raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
    except IrregularFileError as error:
        raise damaged(path, str(error.strerror)) from None
    try:
        found = os.fstat(handle).st_size
        if found != length:
            raise damaged(path, f"is {found:,} bytes long, and should be {length:,}")
        yield handle
    finally:
        os.close(handle)


def expect_length(root: str | os.PathLike, name: str, length: int) -> None:
    """Raise as read_exactly does unless a store's file exists with this length; its content is not read."""
    with _opened(f"{os.fspath(root)}/{name}", length):
        pass


def fetch_ahead(root: str | os.PathLike, name: str, length: int) -> None:
    """Ask the kernel to read `length` bytes of a store's file into its cache, without waiting; the later read raises."""
    with suppress(OSError):
        handle = open_regular(os.path.join(root, name))
        try:
            for start in range(0, length, _AHEAD):
                systems.fetch_ahead(handle, start, _AHEAD)
        finally:
            os.close(handle)


def read_guarded(root: str | os.PathLike, name: str, guard: tuple[int, int], raw: np.ndarray | None = None) -> np.ndarray:
    """The content of a store's file, whose (length, CRC-32C) must be `guard`; a view of `raw` if given.

    Raises as read_exactly does.
    """
    length, crc = guard
    content = read_exactly(root, name, length, raw)
    if crc32c(content) != crc:
        raise damaged(f"{os.fspath(root)}/{name}", "does not have the checksum that the manifest states")
    return content


def expect_files_only(root: str) -> None:
    """Raise CorruptError unless there are only files and folders below `root`: zarr-python opens anything with the right name."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise damaged(os.path.join(folder, name), str(IrregularFileError(name, mode).strerror))
