"""How `convert` stays below its memory limit: blocks of constant size, and the largest shards for which there is room."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from streamcut.errors import MemoryBudgetError
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.features import BYTES
from streamcut.io.sources.source import SLACK
from streamcut.io.stores.spec import MOST_FEATURES, SHARD_NNZ
from streamcut.io.stores.writer import writer_bytes

DEFAULT_LIMIT = 10**9
_VARIES = 8 << 20  # between runs of a command
SORT_LEAST = 32 << 20
_KEYS_LEAST = 8 << 20  # a dictionary of categories and words; it also gets most of the rest
_READING = 42  # bytes of memory per byte of a block of text: for the shortest lines ("1\n") arrays of the parser, and rows
BLOCKS = (512 << 10, 256 << 10, 128 << 10)
SHARD_LEAST = 1 << 18
FEATURES_LEAST = 1 << 15  # statistics of this many features always fit into SLACK
_WITHOUT_FEATURES, _FOR_FEATURES = 400 * 10**6, 0.23  # statistics of more features get this share of the memory above this


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """Sizes that fit below `limit`. `lines` lists the memory by purpose, in bytes.

    block_bytes  of text in one piece
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
    lines: dict[str, int]


def make_plan(
    limit: int | None,
    base: int,
    *,
    threads: int,
    shard_nnz: int | None,
    sorting: bool,
    learning: bool = False,
    writers: int,
    held: int = 0,
    remote: bool = False,
    n_features: int | None = None,
    features: int | None = None,
) -> ConvertPlan:
    """The largest shards, threads and blocks, in this order, that fit below `limit` (None: 1 GB, or the least if that is more).

    base: resident bytes before the work; held: what the source holds in addition to blocks; remote: shards go to a URL.
    The size of shards changes the result. If `shard_nnz` is not given, it follows from `limit`, not from the current resident
    memory, unless nothing would fit. n_features: None while unknown; features: of a conversion to be resumed.
    Raises MemoryBudgetError with both numbers.
    """
    known = DEFAULT_LIMIT if limit is None else limit
    kept = min(max(int((known - _WITHOUT_FEATURES) * _FOR_FEATURES) // BYTES, FEATURES_LEAST), MOST_FEATURES)
    kept = kept if features is None else features
    counted = kept if n_features is None else n_features if n_features <= kept else 0
    tallies = writers * max(0, counted - FEATURES_LEAST) * BYTES * (features is None)  # none while a store is resumed
    shards = [shard_nnz]
    if shard_nnz is None:
        sizes = [SHARD_NNZ >> k for k in range((SHARD_NNZ // SHARD_LEAST).bit_length())]
        shards = [size for size in sizes if writer_bytes(size, 1, remote) <= known // 4 or size == SHARD_LEAST]
    choices = []
    for shard, count, block in product(shards, dict.fromkeys((threads, 1)), BLOCKS):
        reading, writing = held + _READING * block * (count + 2 if count > 1 else 1), writer_bytes(shard, count, remote)
        # Sorted rows are written after all are read, one output at a time; otherwise reading and writing overlap.
        work = max(reading, writing) + SORT_LEAST if sorting else reading + writers * writing
        choices.append((base + SLACK + tallies + work + learning * _KEYS_LEAST, shard, count, block, reading, writing))
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
    needed, shard, count, block, reading, writing = fitting[0]
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
