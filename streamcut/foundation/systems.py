"""Differences between Linux and macOS, and what other modules ask of the system. No other module checks which one it is.

macOS has no read-ahead advice, no affinity and no way to reserve a file's blocks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import sys
from contextlib import suppress

LINUX = sys.platform == "linux"
_PIECE = 1 << 20


def lock(handle: int) -> None:
    """Lock the open file exclusively. Raises BlockingIOError if another process has it, OSError if locks are unsupported."""
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_directory(path: str | os.PathLike) -> None:
    """Make the names inside `path` durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reserve(handle: int, size: int) -> None:
    """Make the open, empty file `size` zero bytes with disk space allocated. Raises OSError if there is no space."""
    if LINUX:
        os.posix_fallocate(handle, 0, size)
        return
    zeros = bytes(min(size, _PIECE))
    left = size
    while left > 0:
        left -= os.write(handle, zeros[:left])


def fetch_ahead(handle: int, start: int, length: int) -> None:
    """Prefetch bytes of an open file without waiting, if the system supports it."""
    if LINUX:
        os.posix_fadvise(handle, start, length, os.POSIX_FADV_WILLNEED)


def release(mapped: mmap.mmap, start: int, length: int) -> None:
    """Release the pages of a mapped file, which are not used for a while; their content stays."""
    mapped.madvise(mmap.MADV_DONTNEED, start, length)


def map_nothing(size: int) -> None:
    """Map `size` bytes of memory and release them. Raises OSError if there are not that many."""
    mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()


def alive(process: int) -> bool:
    """Whether a process with this id exists."""
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
    if LINUX:
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> tuple[int, int]:
    """(total, available) bytes of the machine."""
    if LINUX:
        text = content("/proc/meminfo")
        return _kilobytes(text, b"MemTotal:"), _kilobytes(text, b"MemAvailable:")
    import psutil

    virtual = psutil.virtual_memory()
    return virtual.total, virtual.available


def resident_bytes() -> int:
    """Resident memory of this process."""
    if LINUX:
        return _kilobytes(content("/proc/self/status"), b"VmRSS:")
    import psutil

    return psutil.Process().memory_info().rss


def restart_peak() -> None:
    """Have `peak_bytes` begin with the present resident memory, where the system can: Linux, unless /proc is read-only."""
    if LINUX:
        with suppress(OSError), open("/proc/self/clear_refs", "wb") as file:
            file.write(b"5")


def peak_bytes() -> int:
    """Peak resident memory of this process, since `restart_peak` or its start."""
    if LINUX:  # getrusage would include a parent's peak
        return _kilobytes(content("/proc/self/status"), b"VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def give_back() -> None:
    """Have the C library return free memory to the system if it can: it keeps memory freed by ended threads."""
    if not LINUX:
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl returns memory on its own
    if trim is not None:
        trim(0)


def content(path: str) -> bytes:
    """The content of a short kernel file. A small fit reads several, so no file object is created."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, _PIECE)
    finally:
        os.close(handle)


def _kilobytes(text: bytes, field: bytes) -> int:
    """Bytes from a line of `text` that gives kB."""
    _, separator, rest = text.partition(field)
    if not separator:
        raise OSError(f"the kernel does not report {field.decode()[:-1]}")
    return int(rest.split(None, 1)[0]) * 1024


def limits() -> dict[str, int]:
    """The limits "d" and "v" of `ulimit` that are set, in bytes."""
    soft = {"d": resource.getrlimit(resource.RLIMIT_DATA)[0], "v": resource.getrlimit(resource.RLIMIT_AS)[0]}
    return {name: limit for name, limit in soft.items() if limit != resource.RLIM_INFINITY}


def node() -> str:
    """The name of this machine."""
    import platform

    return platform.node()
