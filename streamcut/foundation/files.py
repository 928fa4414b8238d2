"""Files that survive a crash: durable writes under a temporary name, locks, and the failpoints that tests use."""

from __future__ import annotations

import errno
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamcut.errors import DiskFullError, LockedError, NotFoundError
from streamcut.foundation.systems import lock, sync_directory

__all__ = ["sync_directory"]  # and everything defined here

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNREACHABLE = {  # the name cannot be read or written here
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS,
    errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO,
}  # fmt: skip
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_hits: Counter[tuple[str | None, str]] = Counter()


def failpoint(name: str) -> None:
    """Do nothing, unless STREAMCUT_FAILPOINT=`name:N:action` makes the N-th visit kill, raise or sleep.

    Actions: `kill` (SIGKILL), `stop` (SIGSTOP), an errno name such as `ENOSPC` or `EIO`, `sleep=SECONDS`, `hold=FIFO` (until
    another process opens this named pipe for writing and closes it). Several are separated by commas. Visits are counted from one
    for each value of STREAMCUT_FAILPOINT_RUN.
    """
    wanted = os.environ.get("STREAMCUT_FAILPOINT")
    if not wanted:
        return
    visited = os.environ.get("STREAMCUT_FAILPOINT_RUN"), name
    _hits[visited] += 1
    for point in wanted.split(","):
        where, count, action = point.split(":")
        if where != name or int(count) != _hits[visited]:
            continue
        if action in ("kill", "stop"):
            os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)
        elif action.startswith("sleep="):
            time.sleep(float(action[6:]))
        elif action.startswith("hold="):
            Path(action[5:]).read_bytes()
        else:
            raise OSError(number := vars(errno)[action], os.strerror(number), name)


def scratch_folder(chosen: str | os.PathLike | None) -> Path:
    """`chosen`, or TMPDIR, or /var/tmp (which is a disk more often than /tmp is), or Python's default for temporary files.

    Raises NotFoundError or DiskFullError where TMPDIR is set and cannot be used: Python would take another folder in silence.
    """
    if chosen is not None:
        return Path(chosen)
    if named := os.environ.get("TMPDIR"):
        try:
            with disk_full(named), tempfile.TemporaryFile(dir=named, prefix="streamcut-", buffering=0) as file:
                file.write(b"\0" * 4096)
        except DiskFullError as error:
            raise DiskFullError(f"TMPDIR: {error}; set it to another folder, or give --scratch") from None
        except OSError as error:
            raise NotFoundError(
                f"TMPDIR: {named}: {error.strerror}; set it to a folder that can be written to, or give --scratch"
            ) from None
        return Path(named)
    usual = Path("/var/tmp")
    return usual if os.access(usual, os.W_OK) else Path(tempfile.gettempdir())


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


def write_durably(
    path: str | os.PathLike,
    parts: Iterable[bytes | memoryview],
    size: int | None = None,
    *,
    prefix: str = "file",
    sync_parent: bool = True,
) -> None:
    """Write `parts`, `size` bytes in all if that is known, so that after a crash `path` holds the old content or all of the new.

    Temporary name, fsync, rename, fsync of the directory (`sync_parent=False` leaves the last to a caller that writes many).
    Failpoints: PREFIX_tmp, PREFIX_fsync, PREFIX_rename. Raises DiskFullError.
    """
    with disk_full(path, size), replacing(Path(path), prefix=prefix, sync_parent=sync_parent) as file:
        for part in parts:
            file.write(part)


class Sink:
    """Writes bytes to an open file. Failpoint: PREFIX_tmp, before each piece that the system accepts."""

    def __init__(self, handle: int, prefix: str) -> None:
        self._handle, self._failpoint = handle, f"{prefix}_tmp"

    def write(self, part: bytes | memoryview) -> int:
        """Write all of `part`; its size in bytes."""
        view = memoryview(part).cast("B")
        size = len(view)
        while view:
            failpoint(self._failpoint)
            view = view[os.write(self._handle, view) :]
        return size

    def flush(self) -> None:
        """Nothing to do: nothing is held back. Without `tell`, libraries write from front to back."""


def temporary_name(path: Path) -> Path:
    """The temporary name under which this process writes `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@contextmanager
def replacing(
    path: Path, *, prefix: str, sync_parent: bool = True, mode: int | None = None, replace: bool = True
) -> Iterator[Sink]:
    """A new file that becomes `path` once its content is on disk, and is removed on failure.

    `mode`: permissions other than the usual ones. Unless `replace`, raises FileExistsError if `path` exists at the end. The
    temporary file is locked while it is written: an unlocked one is left over from a dead process.
    """
    temporary = temporary_name(path)
    handle = _fresh(temporary)
    try:
        try:
            if mode is not None:
                os.fchmod(handle, mode)
            yield Sink(handle, prefix)
            failpoint(f"{prefix}_fsync")
            os.fsync(handle)
            failpoint(f"{prefix}_rename")
            if replace:
                os.replace(temporary, path)
            else:
                _rename_to_new(temporary, path)
        except BaseException:
            with suppress(OSError):  # report the first error
                temporary.unlink()
            raise
    finally:
        os.close(handle)
    if sync_parent:
        sync_directory(path.parent)


def _fresh(temporary: Path) -> int:
    """A new file of this name, open for writing and locked; one left by a dead process with the same id is removed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        handle = os.open(temporary, flags, 0o666)
    except FileExistsError:
        if not remove_abandoned(temporary):
            raise LockedError(f"{temporary} is already being written by this process") from None
        handle = os.open(temporary, flags, 0o666)
    with suppress(OSError):  # a file system without locks
        lock(handle)
    return handle


def _rename_to_new(temporary: Path, path: Path) -> None:
    """As os.rename, but raises FileExistsError if `path` exists."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(temporary, path)
        return
    temporary.unlink()


def remove_abandoned(path: Path) -> bool:
    """Remove the temporary file `path` unless its writer holds the lock; returns whether it is gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        lock(handle)
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@contextmanager
def locked(path: str | os.PathLike, what: str, *, required: bool = True, remove: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`, released when the process ends. Raises LockedError if another holds it.

    Unless `required`, a file system without locks is accepted. `remove`: delete an empty file at the end.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        try:
            lock(handle)
        except BlockingIOError:
            raise LockedError(f"{what} is being written by another process; wait for it or stop it") from None
        except OSError as error:
            if required or error.errno not in _NO_LOCKS:
                raise
        if not os.path.exists(path) or not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise LockedError(f"{what} was being written by another process until just now; check it, then try again")
        try:
            yield
        finally:
            if remove and os.fstat(handle).st_size == 0:
                with suppress(OSError):
                    os.unlink(path)
    finally:
        os.close(handle)
