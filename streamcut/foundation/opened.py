"""Opens untrusted files: no other module in the package opens one.

Anything but a regular file is refused at once: a pipe would block the caller, and a device would never end. Any exception of a
library on damaged or forged content becomes a message (`readable`).
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from streamcut.errors import BadInputError, NotFoundError, StreamcutError

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a pipe is opened without waiting for its writer
_SHOWN = 300  # characters of a library's message


class IrregularFileError(OSError):
    """The name exists but is not a regular file; strerror says what it is."""

    def __init__(self, path: str | os.PathLike, mode: int) -> None:
        self.mode = mode
        what = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        super().__init__(errno.EINVAL, f"is {what}, not a file", os.fspath(path))


def open_regular(path: str | os.PathLike) -> int:
    """A descriptor that reads the regular file `path`, following symbolic links. Raises OSError, IrregularFileError at once."""
    if not stat.S_ISREG(mode := os.stat(path).st_mode):  # opening a pipe would break it for its writer
        raise IrregularFileError(path, mode)
    handle = os.open(path, _FLAGS)
    if stat.S_ISREG(mode := os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise IrregularFileError(path, mode)


def opened_file(path: str | os.PathLike) -> io.BufferedReader:
    """The regular file `path` for reading; raises as `open_regular`."""
    return open(open_regular(path), "rb")


def opened_raw(path: str | os.PathLike) -> io.FileIO:
    """The same without a buffer."""
    return open(open_regular(path), "rb", buffering=0)


def opened_stream(path: str | os.PathLike) -> io.FileIO:
    """As `opened_raw`; also opens a pipe or a device, for input read from front to back."""
    try:
        return opened_raw(path)
    except IrregularFileError as error:
        if stat.S_ISFIFO(error.mode) or stat.S_ISCHR(error.mode):
            return open(path, "rb", buffering=0)
        raise


def read_file(path: str | os.PathLike, most: int | None = None) -> bytes:
    """The content of the regular file `path`; raises as `open_regular`, and OSError if it is longer than `most` bytes."""
    with opened_file(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"is longer than the {most:,} bytes that it may have", os.fspath(path))
        return file.read()


def read_lines(path: str | os.PathLike, what: str) -> list[str]:
    """The lines of a text in UTF-8, which the message calls `what`. Raises NotFoundError and BadInputError."""
    try:
        return read_file(path).decode().splitlines()
    except OSError as error:
        raise NotFoundError(f"{what}: {os.fspath(path)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{what}: {os.fspath(path)}: not UTF-8 ({error})") from None


def regular(path: str | os.PathLike) -> str:
    """`path`, checked to be a regular file, for a library that opens files itself; raises as `open_regular`."""
    os.close(open_regular(path))
    return os.fspath(path)


@contextmanager
def readable(
    path: object, error: type[StreamcutError] = BadInputError, what: str = "cannot be read", advice: str = ""
) -> Iterator[None]:
    """Turn any exception of libraries that read `path`, damaged or forged, into an `error`: PATH: WHAT (why)ADVICE.

    Our own errors and MemoryError pass through.
    """
    try:
        yield
    except (StreamcutError, MemoryError):
        raise
    except Exception as cause:
        why = " ".join(str(cause).split())[:_SHOWN]
        if type(cause) is not ValueError or not why:  # a ValueError's text is already a message
            why = f"{type(cause).__name__}: {why}"
        raise error(f"{path}: {what} ({why}){advice}") from cause
