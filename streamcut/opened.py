"""Opening files that somebody else has made: what is no regular file is refused at once, and links in a store are not followed.

A pipe in the place of a file would block who opens it, a device would never end, and a symbolic link in a store would lead out of
it to any file that this user can read.
"""

from __future__ import annotations

import errno
import os
import stat

from streamcut.systems import AT_ONCE, BINARY, FOLDER, FOLDERS_OPEN, NO_LINK, NO_TERMINAL

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}
_FLAGS = os.O_RDONLY | AT_ONCE | NO_TERMINAL | BINARY
_FOLDER = os.O_RDONLY | FOLDER | BINARY


class IrregularFileError(OSError):
    """There is something of that name, but no file; strerror says what."""

    def __init__(self, path: str | os.PathLike, mode: int) -> None:
        what = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        super().__init__(errno.EINVAL, f"is {what}, not a file", os.fspath(path))


def open_regular(path: str | os.PathLike) -> int:
    """A descriptor that reads the regular file `path`, following symbolic links. Raises OSError, IrregularFileError at once."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise IrregularFileError(path, stat.S_IFSOCK) from None
        raise
    return _regular(handle, path)


def open_below(root: str | os.PathLike, relative: str) -> int:
    """As open_regular for the file `relative` ("a/b/c") of the folder `root`; nothing below `root` may be a symbolic link."""
    *folders, name = relative.split("/")
    if not FOLDERS_OPEN:  # Windows, where making a link takes an administrator
        place = os.fspath(root)
        for part in (*folders, name):
            place = os.path.join(place, part)
            if stat.S_ISLNK(mode := os.lstat(place).st_mode):
                raise IrregularFileError(relative, mode)
        return _regular(os.open(place, _FLAGS), relative)
    handle = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = _without_links(folder, handle, _FOLDER, relative)
            os.close(handle)
            handle = inner
        return _regular(_without_links(name, handle, _FLAGS, relative), relative)
    finally:
        os.close(handle)


def _without_links(name: str, folder: int, flags: int, shown: str) -> int:
    try:
        return os.open(name, flags | NO_LINK, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):  # what there is instead
            raise IrregularFileError(shown, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) from None
        raise


def _regular(handle: int, path: str | os.PathLike) -> int:
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    raise IrregularFileError(path, mode)
