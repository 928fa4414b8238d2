"""What other modules ask of the system: differences between Linux and macOS, memory within the limits of the process's control
group, and processors. No other module checks which system it is.

macOS has no read-ahead advice, no affinity and no way to reserve a file's blocks.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamcut.errors import MemoryBudgetError, UsageError
from streamcut.foundation.units import format_bytes, parse_size

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

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


_AUTO_SHARE = 0.8
_MOMENT = 0.25  # seconds
_asked = (-math.inf, 0, 0)  # time and value of the last answer of _now
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def memory_limit(text: str) -> int:
    """Bytes for `auto` (80 % of what is available now), a percentage of all memory, or a size; cgroup limits apply."""
    total, automatic = _now()
    if text == "auto":
        return automatic
    size = parse_size(text, option="--memory", total=total)
    if size < 1:
        raise UsageError(f"--memory: {text!r} is less than one byte; write for example 2GB, 50% or auto")
    return size


SPREAD = 6 << 20  # bytes by which a process differs from run to run: the least that a refusal names must do in the next


def too_little(budget: int, least: int, why: str, advice: str = "") -> MemoryBudgetError:
    """The refusal of a budget below `least` bytes, which it names as --memory takes them, rounded up."""
    shown = f"{math.ceil(least / 1e6)}MB" if least < 1e10 else f"{math.ceil(least / 1e9)}GB"
    text = f"--memory: {format_bytes(budget)} is too little: this run needs at least {shown} ({why}). Raise --memory{advice}"
    error = MemoryBudgetError(text)
    error.least = least
    return error


def _now() -> tuple[int, int]:
    """(all memory, the value of `auto`), at most a moment old: asking the kernel takes as long as a pass of a small fit."""
    global _asked
    if (now := time.monotonic()) - _asked[0] > _MOMENT:
        total, available = machine_memory()
        _asked = now, total, int(available * _AUTO_SHARE) + resident_bytes()
    return _asked[1:]


def machine_memory(cgroups: Path = _CGROUPS, membership: Path = _OWN_CGROUPS) -> tuple[int, int]:
    """(total, available) bytes, within the limits of this process's control groups, version 1 or 2, and their ancestors."""
    total, available = memory()
    for limit, used in _cgroup_limits(cgroups, membership):
        total, available = min(total, limit), min(available, limit - used)
    return total, max(available, 0)


def _cgroup_limits(cgroups: Path, membership: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) bytes of each group with a limit; file pages that the kernel reclaims first do not count as used."""
    try:
        lines = content(str(membership)).decode().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            root, names = str(cgroups), ("memory.max", "memory.current", b"inactive_file")
        elif "memory" in controllers.split(","):
            root, names = f"{cgroups}/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file")
        else:
            continue
        parts = [part for part in place.split("/") if part]
        for depth in range(len(parts), -1, -1):
            folder = "/".join((root, *parts[:depth]))
            try:
                limit = content(f"{folder}/{names[0]}").strip()
                if limit != b"max":
                    usage = int(content(f"{folder}/{names[1]}"))
                    words = content(f"{folder}/memory.stat").split()
                    yield int(limit), usage - (int(words[words.index(names[2]) + 1]) if names[2] in words else 0)
            except OSError:  # a container often sees only part of the tree
                continue


def expect_room() -> None:
    """Raise MemoryBudgetError when `ulimit -d` or `-v` leaves less than loading the libraries needs.

    Without memory they would end the process, or spin. BLAS has a thread with a stack per processor.
    """
    threads = available_cpus()
    present = limits()
    for option, least in (("d", 130_000_000 + threads * 25_000_000), ("v", 400_000_000 + threads * 50_000_000)):
        limit = present.get(option, least)
        if limit < least:
            raise MemoryBudgetError(
                f"`ulimit -{option}` allows this process {format_bytes(limit)}, and loading its libraries takes "
                f"{format_bytes(least)}; raise it to that (in kB: {-(-least // 1024)}) or more"
            )


def available_cpus() -> int:
    """Processors that this process may use."""
    return cpus()


def one_blas_thread() -> AbstractContextManager:
    """A context in which BLAS and LAPACK use one thread: the same bits on any machine, and no other thread spins."""
    return _blas("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


@cache
def _blas(with_scipys: bool) -> ThreadpoolController:
    """The BLAS libraries loaded now: SciPy has its own, which may be loaded later than NumPy's."""
    from threadpoolctl import ThreadpoolController  # it scans all loaded libraries

    return ThreadpoolController()
