"""Resources of this process: memory within the limits of its control group, and processors."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamcut.errors import MemoryBudgetError, UsageError
from streamcut.foundation import systems
from streamcut.foundation.units import format_bytes, parse_size

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

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
        _asked = now, total, int(available * _AUTO_SHARE) + systems.resident_bytes()
    return _asked[1:]


def machine_memory(cgroups: Path = _CGROUPS, membership: Path = _OWN_CGROUPS) -> tuple[int, int]:
    """(total, available) bytes, within the limits of this process's control groups, version 1 or 2, and their ancestors."""
    total, available = systems.memory()
    for limit, used in _cgroup_limits(cgroups, membership):
        total, available = min(total, limit), min(available, limit - used)
    return total, max(available, 0)


def _cgroup_limits(cgroups: Path, membership: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) bytes of each group with a limit; file pages that the kernel reclaims first do not count as used."""
    try:
        lines = systems.content(str(membership)).decode().splitlines()
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
                limit = systems.content(f"{folder}/{names[0]}").strip()
                if limit != b"max":
                    usage = int(systems.content(f"{folder}/{names[1]}"))
                    words = systems.content(f"{folder}/memory.stat").split()
                    yield int(limit), usage - (int(words[words.index(names[2]) + 1]) if names[2] in words else 0)
            except OSError:  # a container often sees only part of the tree
                continue


def expect_room() -> None:
    """Raise MemoryBudgetError when `ulimit -d` or `-v` leaves less than loading the libraries needs.

    Without memory they would end the process, or spin. BLAS has a thread with a stack per processor.
    """
    threads = available_cpus()
    limits = systems.limits()
    for option, least in (("d", 130_000_000 + threads * 25_000_000), ("v", 400_000_000 + threads * 50_000_000)):
        limit = limits.get(option, least)
        if limit < least:
            raise MemoryBudgetError(
                f"`ulimit -{option}` allows this process {format_bytes(limit)}, and loading its libraries takes "
                f"{format_bytes(least)}; raise it to that (in kB: {-(-least // 1024)}) or more"
            )


def available_cpus() -> int:
    """Processors that this process may use."""
    return systems.cpus()


def one_blas_thread() -> AbstractContextManager:
    """A context in which BLAS and LAPACK use one thread: the same bits on any machine, and no other thread spins."""
    return _blas("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


@cache
def _blas(with_scipys: bool) -> ThreadpoolController:
    """The BLAS libraries loaded now: SciPy has its own, which may be loaded later than NumPy's."""
    from threadpoolctl import ThreadpoolController  # it scans all loaded libraries

    return ThreadpoolController()
