"""Reading a local file of known length and checksum into reused memory."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import numpy as np

from streamcut.errors import NotFoundError
from streamcut.foundation import systems
from streamcut.foundation.opened import IrregularFileError, open_regular, opened_raw
from streamcut.io.manifest import damaged
from streamcut.io.stores.codec import crc32c

_AHEAD = 128 << 10  # bytes: Linux may truncate longer readahead requests to this


def read_exactly(root: str | os.PathLike, name: str, length: int, raw: np.ndarray | None) -> np.ndarray:
    """The `length` bytes of the file `name` ("a/b") of the store `root`, as a view of `raw` (uint8, large enough) if given.

    Raises CorruptError when the file is missing, not a regular file, unreadable or of another length, NotFoundError without
    permission to read it.
    """
    path = f"{os.fspath(root)}/{name}"
    try:
        with opened_raw(path) as file:
            found = os.fstat(file.fileno()).st_size
            if found != length:
                raise damaged(path, f"is {found:,} bytes long, and should be {length:,}")
            view = np.empty(length, np.uint8) if raw is None else raw[:length]
            rest = view.data
            while rest:
                if not (got := file.readinto(rest)):
                    raise damaged(path, "became shorter while it was read")
                rest = rest[got:]
            return view
    except (FileNotFoundError, NotADirectoryError):
        raise damaged(path, "missing") from None
    except PermissionError as error:
        raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
    except IrregularFileError as error:
        raise damaged(path, str(error.strerror)) from None
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from error


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
