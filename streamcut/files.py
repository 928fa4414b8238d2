"""Files that survive a crash: durable writes under a temporary name, locks, and the failpoints that tests use."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamcut.errors import DiskFullError, LockedError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNREACHABLE = {  # a name that cannot be read or written here
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS,
    errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO,
}  # fmt: skip
_hits: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Do nothing, unless STREAMCUT_FAILPOINT=`name:N:action` asks that the N-th visit kill, raise or sleep.

    Actions: `kill` (SIGKILL), an errno name such as `ENOSPC` or `EIO`, `sleep=SECONDS`. Several are separated by commas.
    """
    wanted = os.environ.get("STREAMCUT_FAILPOINT")
    if not wanted:
        return
    _hits[name] += 1
    for point in wanted.split(","):
        where, count, action = point.split(":")
        if where != name or int(count) != _hits[name]:
            continue
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action.startswith("sleep="):
            time.sleep(float(action[6:]))
        else:
            raise OSError(getattr(errno, action), os.strerror(getattr(errno, action)), name)


@contextmanager
def disk_full(path: str | os.PathLike, needed: int | None = None) -> Iterator[None]:
    """Turn "no space left", "quota exceeded" and "file too large" into DiskFullError naming `path` and the bytes `needed`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        size = "" if needed is None else f" ({needed:,} bytes needed)"
        raise DiskFullError(f"{path}: {error.strerror}{size}; free some space, then run the same command again") from error


def sync_directory(path: str | os.PathLike) -> None:
    """Make the names inside `path` durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: str | os.PathLike, *parts: bytes | memoryview, prefix: str = "file", sync_parent: bool = True) -> None:
    """Write `parts` to `path` so that after a crash it holds the old content, or all of the new, never some.

    Temporary name, fsync, rename, fsync of the directory (`sync_parent=False` leaves the last to a caller who writes many).
    Failpoints: PREFIX_tmp, PREFIX_fsync, PREFIX_rename. Raises DiskFullError.
    """
    size = sum(len(memoryview(part).cast("B")) for part in parts)
    write_stream_durably(path, parts, size, prefix=prefix, sync_parent=sync_parent)


def write_stream_durably(
    path: str | os.PathLike, parts: Iterable[bytes | memoryview], size: int, *, prefix: str = "file", sync_parent: bool = True
) -> None:
    """As write_durably, of `parts` that are made while they are written; `size` bytes in all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_full(path, size):
        try:
            with open(temporary, "wb", buffering=0) as file:
                for part in parts:
                    view = memoryview(part).cast("B")
                    while view:
                        failpoint(f"{prefix}_tmp")
                        view = view[file.write(view) :]
                failpoint(f"{prefix}_fsync")
                os.fsync(file.fileno())
            failpoint(f"{prefix}_rename")
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what to tell
                temporary.unlink()
            raise
        if sync_parent:
            sync_directory(path.parent)


@contextmanager
def locked(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`, which dies with the process. Raises LockedError when another holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(f"{what} is being written by another process; wait for it or stop it") from None
        if not os.path.exists(path) or not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise LockedError(f"{what} was being written by another process until just now; look at it, then try again")
        yield
    finally:
        os.close(handle)
