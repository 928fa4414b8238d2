"""What operating systems do differently, in one place. Nothing else asks which one it is, or imports a module that one lacks.

Linux has all of it. macOS has no advice to fetch files ahead, no affinity and no way to reserve a file's blocks. Windows has no
fcntl, opens no folders, follows no descriptor of one, and neither renames nor removes a file that is open.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LINUX = sys.platform == "linux"
WINDOWS = sys.platform == "win32"


def _flags(*names: str) -> int:
    """Those flags of os.open that there are."""
    return sum(getattr(os, f"O_{name}", 0) for name in names)


BINARY = _flags("BINARY", "CLOEXEC", "NOINHERIT")  # for whatever is opened
AT_ONCE = _flags("NONBLOCK")  # a pipe is opened without waiting for who writes to it
NO_TERMINAL = _flags("NOCTTY")  # that is opened becomes ours
NO_LINK = _flags("NOFOLLOW")
FOLDER = _flags("DIRECTORY")
FOLDERS_OPEN = bool(FOLDER) and os.open in os.supports_dir_fd  # and files are opened below such a descriptor
_PIECE = 1 << 20


def lock(handle: int) -> None:
    """Lock the open file for this process alone. Raises BlockingIOError when another has it, OSError where there are no locks."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    place = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, 1 << 40, os.SEEK_SET)  # a byte that nobody writes: Windows keeps others from reading what is locked
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK)) from None
        raise
    finally:
        os.lseek(handle, place, os.SEEK_SET)


def sync_directory(path: str | os.PathLike) -> None:
    """Make the names inside `path` durable; Windows does so by itself."""
    if not FOLDER:
        return
    handle = os.open(path, os.O_RDONLY | FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_mode(handle: int, mode: int) -> None:
    """The permissions of an open file, where files have such."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def reserve(handle: int, size: int) -> None:
    """Make the open, empty file `size` bytes of zeros whose place on the disk is taken. Raises OSError when there is none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    zeros = bytes(min(size, _PIECE))
    left = size
    while left > 0:
        left -= os.write(handle, zeros[:left])


def fetch_ahead(handle: int, start: int, length: int) -> None:
    """Ask for bytes of an open file that will be read soon, without waiting, where that can be asked."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, start, length, os.POSIX_FADV_WILLNEED)


def release(mapped: mmap.mmap, start: int, length: int) -> None:
    """The pages of a mapped file are not used for a while; what they hold stays."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED, start, length)


def map_nothing(size: int) -> None:
    """Ask for `size` bytes of memory and give them back. Raises OSError when there are not so many."""
    if hasattr(mmap, "MAP_PRIVATE"):
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()  # type: ignore[attr-defined]
    else:
        mmap.mmap(-1, size).close()


def alive(process: int) -> bool:
    """Whether there is a process of this number."""
    if WINDOWS:  # where os.kill ends it
        import psutil

        return psutil.pid_exists(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def cpus() -> int:
    """Processors that this process may use."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> tuple[int, int]:
    """(total, available) bytes of the machine."""
    if LINUX:
        text = content("/proc/meminfo")
        return _kilobytes(text, b"MemTotal:"), _kilobytes(text, b"MemAvailable:")
    import psutil

    found = psutil.virtual_memory()
    return found.total, found.available


def resident_bytes() -> int:
    """What this process holds in memory."""
    if LINUX:
        return _kilobytes(content("/proc/self/status"), b"VmRSS:")
    import psutil

    return psutil.Process().memory_info().rss


def peak_bytes() -> int:
    """The most that this process has held in memory so far."""
    if LINUX:  # getrusage would count a parent's peak
        return _kilobytes(content("/proc/self/status"), b"VmHWM:")
    if WINDOWS:
        import psutil

        return psutil.Process().memory_info().peak_wset
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def give_back() -> None:
    """Have the C library give free memory back, where it can be asked to: it keeps what threads of the past had freed."""
    if not LINUX:
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl gives back by itself
    if trim is not None:
        trim(0)


def content(path: str) -> bytes:
    """What a file of the kernel says, which is short. A small fit asks some of them, so nothing is opened around it."""
    handle = os.open(path, os.O_RDONLY | BINARY)
    try:
        return os.read(handle, _PIECE)
    finally:
        os.close(handle)


def _kilobytes(text: bytes, field: bytes) -> int:
    """The bytes that a line of `text` says in kB."""
    _, found, rest = text.partition(field)
    if not found:
        raise OSError(f"the kernel does not tell {field.decode()[:-1]}")
    return int(rest.split(None, 1)[0]) * 1024


def limits() -> dict[str, int]:
    """The limits "d" and "v" of `ulimit` that are set, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return {}
    found = {"d": resource.getrlimit(resource.RLIMIT_DATA)[0], "v": resource.getrlimit(resource.RLIMIT_AS)[0]}
    return {name: limit for name, limit in found.items() if limit != resource.RLIM_INFINITY}


def node() -> str:
    """The name of this machine."""
    import platform

    return platform.node()
