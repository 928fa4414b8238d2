"""The memory plan: arithmetic on the manifest, made before any work, kept by construction and shown line by line."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from streamcut.errors import MemoryBudgetError
from streamcut.io.dataset import shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.units import format_bytes, parse_size

_AUTO_SHARE = 0.8
_SLACK = 16 << 20  # Python objects, histograms, blocks of coefficients


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """`lines` are (what, bytes) of the necessities; `pinned` are the shards kept decoded with what is left of `budget`."""

    budget: int
    lines: tuple[tuple[str, int], ...]
    pinned: frozenset[int]
    pinned_bytes: int

    @property
    def needed(self) -> int:
        return sum(size for _, size in self.lines)

    def describe(self, shards: int) -> list[tuple[str, str]]:
        """The plan as (what, size) rows for people."""
        rows = [(what, format_bytes(size)) for what, size in self.lines]
        rows.append((f"pinned shards ({len(self.pinned)} of {shards})", format_bytes(self.pinned_bytes)))
        rows.append(("total", format_bytes(self.needed + self.pinned_bytes)))
        rows.append(("budget", format_bytes(self.budget)))
        return rows


def plan_memory(
    manifest: Manifest, *, budget: int, base: int, dimension: int, max_cuts: int, workers: int, row_bytes: int, in_memory: bool
) -> MemoryPlan:
    """Divide `budget` bytes. `base` is the process as it stands, `row_bytes` the row state of one row.

    `in_memory`: the rows are the caller's arrays, counted in `base` already. Raises MemoryBudgetError with the minimum.
    """
    sizes = [shard_bytes(manifest, shard) for shard in manifest.shards]
    stored = [sum(array.stored_bytes for array in shard.arrays.values()) for shard in manifest.shards]
    vector = 8 * dimension
    lines = [
        ("interpreter, libraries, kernels", base),
        (f"weights and sums (8 + {workers} workers) × {dimension:,} features", (8 + workers) * vector),
        (f"bundle of {max_cuts} cuts × {dimension:,} features", (max_cuts + 1) * vector),
        (f"row state, {row_bytes} bytes × {manifest.statistics.n_rows:,} rows", row_bytes * manifest.statistics.n_rows),
        ("slack", _SLACK),
    ]
    buffers = (f"buffers of {workers} workers", workers * (max(sizes) + max(stored)))
    free = budget - sum(size for _, size in lines)
    if in_memory:
        if free < 0:
            raise _refusal(budget, lines)
        return MemoryPlan(budget, tuple(lines), frozenset(range(len(sizes))), 0)
    if sum(sizes) + max(stored) <= free:  # all of it fits: nothing is ever read again, and no worker needs buffers
        lines.append(("reading", max(stored)))
        return MemoryPlan(budget, tuple(lines), frozenset(range(len(sizes))), sum(sizes))
    lines.append(buffers)
    free -= buffers[1]
    if free < 0:
        raise _refusal(budget, lines)
    pinned, used = set(), 0
    for shard, size in enumerate(sizes):
        if used + size <= free:
            pinned.add(shard)
            used += size
    return MemoryPlan(budget, tuple(lines), frozenset(pinned), used)


def _refusal(budget: int, lines: list[tuple[str, int]]) -> MemoryBudgetError:
    needed = sum(size for _, size in lines)
    parts = "; ".join(f"{what}: {format_bytes(size)}" for what, size in lines)
    return MemoryBudgetError(
        f"--memory {format_bytes(budget)} is too little: this run needs at least {_megabytes_up(needed)} ({parts}). "
        "Raise --memory, or lower --max-cuts, --workers, or the shard size at `convert`"
    )


def _megabytes_up(size: int) -> str:
    return f"{math.ceil(size / 1e6)}MB"


def memory_limit(text: str) -> int:
    """Bytes for `auto` (80 % of what is available now), a percentage of all memory, or a size; a cgroup's limit counts."""
    total, available = _machine_memory()
    if text == "auto":
        return int(available * _AUTO_SHARE) + resident_bytes()
    return parse_size(text, option="--memory", total=total)


def _machine_memory() -> tuple[int, int]:
    """(total, available) bytes, within the limits of this process's cgroup (v2)."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    for folder in _cgroup_folders():
        try:
            limit = (folder / "memory.max").read_text().strip()
            if limit != "max":
                used = int((folder / "memory.current").read_text())
                total, available = min(total, int(limit)), min(available, int(limit) - used)
        except OSError:
            continue
    return total, max(available, 0)


def _cgroup_folders() -> list[Path]:
    try:
        line = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return []
    inside = Path(line[3:].lstrip("/"))
    root = Path("/sys/fs/cgroup")
    return [root / inside, *(root / parent for parent in inside.parents)]


def resident_bytes(field: str = "VmRSS") -> int:
    """This process's resident memory: `VmRSS` now, `VmHWM` its peak (getrusage would count a parent's peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def available_cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
