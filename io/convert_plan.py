"""How `convert` stays below its memory limit: arithmetic on what is needed, done before the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from streamcut.errors import MemoryBudgetError
from streamcut.units import format_bytes

DEFAULT_LIMIT = 10**9
SLACK = 24 << 20  # what the allocator keeps of freed arrays, threads, files
SORT_LEAST = 32 << 20
BLOCKS = (8 << 20, 4 << 20, 2 << 20, 1 << 20, 256 << 10)
SHARDS_LEAST = 1 << 18


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """Sizes that fit. `lines` lists what the memory is for, in bytes.

    block_bytes: of text (or of raw entries) in one piece; sort_bytes: for shuffling and grouping; groups_bytes: for known qids.
    """

    limit: int
    threads: int
    block_bytes: int
    shard_nnz: int
    sort_bytes: int
    groups_bytes: int
    lines: dict[str, int] = field(default_factory=dict)


def resident_bytes() -> int:
    """Resident memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def make_plan(
    limit: int | None,
    base: int,
    *,
    threads: int,
    shard_nnz: int,
    shard_fixed: bool,
    sorting: bool,
    writers: int,
    source_bytes: Callable[[int, int], int],
    writer_bytes: Callable[[int, int], int],
) -> ConvertPlan:
    """The largest shards, blocks and threads, in this order, that fit below `limit` (None: 1 GB, or the least if that is more).

    base: resident bytes before the work; source_bytes(block_bytes, threads), writer_bytes(shard_nnz, threads): what these take.
    Shards are in the result: they shrink last, and not at all when `shard_fixed`. Raises MemoryBudgetError with both numbers.
    """
    shards = [shard_nnz]
    while not shard_fixed and shards[-1] > SHARDS_LEAST:
        shards.append(shards[-1] // 2)
    choices = []
    for shard, block, count in product(shards, BLOCKS, dict.fromkeys((threads, 1))):
        reading, writing = source_bytes(block, count), writer_bytes(shard, count)
        # Sorted rows are written after all are read, to one output after the other; otherwise all goes on at once.
        work = max(reading, writing) + SORT_LEAST if sorting else reading + writers * writing
        choices.append((base + SLACK + work, shard, block, count, reading, writing))
    least = min(choices)[0]
    limit = max(DEFAULT_LIMIT, least) if limit is None else limit
    fitting = next((choice for choice in choices if choice[0] <= limit), None)
    if fitting is None:
        raise MemoryBudgetError(
            f"--memory {format_bytes(limit)} is not enough: at least {format_bytes(least)} are needed, "
            f"of which the process itself takes {format_bytes(base)}; raise --memory"
        )
    needed, shard, block, count, reading, writing = fitting
    left = limit - needed
    sort_bytes = SORT_LEAST + left // 2 if sorting else 0
    lines = {
        "interpreter and libraries": base,
        "allocator, threads, files": SLACK,
        f"reading, {count} threads, blocks of {format_bytes(block)}": reading,
        f"writing, shards of {shard:,} entries": writing if sorting else writers * writing,
        "sorting": sort_bytes,
    }
    return ConvertPlan(limit, count, block, shard, sort_bytes, left // 4, lines)
