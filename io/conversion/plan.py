"""How `convert` stays below its memory limit: the needs are computed before the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from streamcut.errors import MemoryBudgetError
from streamcut.foundation.systems import resident_bytes
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.features import BYTES
from streamcut.io.stores.spec import MOST_FEATURES, SHARD_NNZ

DEFAULT_LIMIT = 10**9
_VARIES = 8 << 20  # between runs of a command
SLACK = 32 << 20  # freed arrays kept by the allocator, threads, decompressors, files, late imports
SORT_LEAST = 32 << 20
_KEYS_LEAST = 8 << 20  # a dictionary of categories and words; it also gets most of the rest
BLOCKS = (512 << 10, 256 << 10, 128 << 10)
SHARD_LEAST = 1 << 18
FEATURES_LEAST = 1 << 15  # statistics of this many features always fit into SLACK
_WITHOUT_FEATURES, _FOR_FEATURES = 400 * 10**6, 0.23  # statistics of more features get this share of the memory above this
_KERNELS = 128 << 20  # loaded between opening the inputs and planning


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """Sizes that fit below `limit`. `lines` lists the memory by purpose, in bytes.

    block_bytes  of text (or of the entries of a table) in one piece
    sort_bytes   for shuffling and grouping
    key_bytes    for a dictionary that is learned
    row_bytes    for a row that is larger than a block
    features     statistics of single features are kept up to this number
    """

    limit: int
    threads: int
    block_bytes: int
    shard_nnz: int
    sort_bytes: int
    key_bytes: int
    row_bytes: int
    features: int
    lines: dict[str, int] = field(default_factory=dict)


def expect_room(limit: int | None, needed: int, what: str) -> None:
    """Raise MemoryBudgetError if `what`, needed before there is a plan, exceeds what `limit` leaves; names a sufficient limit."""
    least = resident_bytes() + SLACK + _KERNELS + needed
    if limit is not None and needed > SLACK and least > limit:
        raise MemoryBudgetError(
            f"{what} takes {format_bytes(needed)} in one piece, and {format_bytes(limit)} of memory are not enough: at least "
            f"{format_enough(least)} are needed; raise --memory"
        )


def make_plan(
    limit: int | None,
    base: int,
    *,
    threads: int,
    shard_nnz: int | None,
    sorting: bool,
    learning: bool = False,
    writers: int,
    source_bytes: Callable[[int, int], int],
    writer_bytes: Callable[[int, int], int],
    n_features: int | None = None,
    features: int | None = None,
) -> ConvertPlan:
    """The largest shards, threads and blocks, in this order, that fit below `limit` (None: 1 GB, or the least if that is more).

    base: resident bytes before the work; source_bytes(block_bytes, threads), writer_bytes(shard_nnz, threads): their memory.
    The size of shards changes the result. If `shard_nnz` is not given, it follows from `limit`, not from the current resident
    memory, unless nothing would fit. n_features: None while unknown; features: of a conversion to be resumed.
    Raises MemoryBudgetError with both numbers.
    """
    known = DEFAULT_LIMIT if limit is None else limit
    usual = min(max(int((known - _WITHOUT_FEATURES) * _FOR_FEATURES) // BYTES, FEATURES_LEAST), MOST_FEATURES)
    features_kept = (features,) if features is not None else tuple(dict.fromkeys((usual, FEATURES_LEAST)))
    shards = [shard_nnz]
    if shard_nnz is None:
        sizes = [SHARD_NNZ >> k for k in range((SHARD_NNZ // SHARD_LEAST).bit_length())]
        shards = [size for size in sizes if writer_bytes(size, 1) <= known // 4 or size == SHARD_LEAST]
    choices = []
    for kept, shard, count, block in product(features_kept, shards, dict.fromkeys((threads, 1)), BLOCKS):
        reading, writing = source_bytes(block, count), writer_bytes(shard, count)
        counted = kept if n_features is None else n_features if n_features <= kept else 0
        tallies = writers * max(0, counted - FEATURES_LEAST) * BYTES * (features is None)  # none while a store is resumed
        # Sorted rows are written after all are read, one output at a time; otherwise reading and writing overlap.
        work = max(reading, writing) + SORT_LEAST if sorting else reading + writers * writing
        needed = base + SLACK + tallies + work + learning * _KEYS_LEAST
        choices.append((needed, shard, count, block, reading, writing, tallies, kept))
    least = min(choices)[0] + _VARIES
    limit = max(DEFAULT_LIMIT, least) if limit is None else limit
    reserve = max(0, limit - base) // 8  # smaller blocks are better than no memory for long rows
    fitting = [choice for choice in choices if choice[0] + reserve <= limit]
    fitting = fitting or [choice for choice in choices if choice[0] <= limit]
    if not fitting:
        raise MemoryBudgetError(
            f"--memory: {format_bytes(limit)} is not enough: at least {format_enough(least)} are needed, "
            f"of which the process itself takes {format_bytes(base)}; raise --memory"
        )
    needed, shard, count, block, reading, writing, tallies, kept = fitting[0]
    left = limit - needed
    sort_bytes = SORT_LEAST + left // 2 if sorting else 0
    left -= left // 2 if sorting else 0
    key_bytes = _KEYS_LEAST + left * 3 // 4 if learning else 0
    row_bytes = left // 4 if learning else left
    lines = {
        "interpreter and libraries": base,
        "allocator, threads, files": SLACK,
        f"reading, {count} threads, blocks of {format_bytes(block)}": reading,
        f"writing, shards of {shard:,} entries": writing if sorting else writers * writing,
        "statistics of features": tallies,
        "sorting": sort_bytes,
        "dictionary of categories and words": key_bytes,
        "rows longer than a block": row_bytes,
    }
    return ConvertPlan(limit, count, block, shard, sort_bytes, key_bytes, row_bytes, kept, lines)
