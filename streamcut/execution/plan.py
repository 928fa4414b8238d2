"""The memory plan: arithmetic on the manifest, done before any work, kept by construction and shown line by line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamcut.errors import MemoryBudgetError, given
from streamcut.execution.row_state import SPILLED_BYTES
from streamcut.execution.runner import ROW_BLOCK
from streamcut.foundation.shown import Shown, html_table
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes

_CACHED = 0.9  # of the row cache is kept when streams take memory: cached rows save more passes
JOINED = "rows put together"  # rows from different shards: streams have this line among their own
SLACK = 48 << 20  # machine code, Python objects, histograms, stacks of threads, what the allocator keeps
_SPREAD = 4 << 20  # run-to-run variation of a process: a refusal's minimum must suffice in the next run
_LEAST_PART = 1 / 64  # of the current shard size: with smaller shards a store has too many files
_ROW_ARRAYS = 5  # kinds of row state at most
_TEMPORARIES = 24  # bytes per row of the current block: scores and coefficients


class Streamed(NamedTuple):
    """Memory to read from several places of a lane at once (streamcut.execution.feed.Streams): bytes per worker.

    always  it pays even where a row cache keeps all rows in memory, so that passes cost arithmetic alone, and it gains more
            than the cache
    ahead   there are processors for extra threads that read and score ahead of each worker; their bytes are always counted, so
            that the result does not depend on the number of processors
    batch   groups of rows in a batch; 0: as many as without streams
    """

    streams: int
    per_worker: int
    always: bool
    ahead: bool = False
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Needs:
    """The inputs of the memory plan.

    dimension   length of a dense vector; `vectors` of them for each worker, max_cuts + 1 in the bundle (−1: there is none)
    row_bytes   row state of one row; row_arrays: of each of its arrays, where known
    row_cache   (least, most) bytes for copies of rows, or for what `cached` names
    more        (what, bytes) of anything else
    per_worker  (what, bytes) of anything else per thread, wherever it runs
    block_rows  rows visited at once, if more than usual; None: those of a whole shard
    between     (what, bytes) of work between passes, when their buffers are free
    streams     places of a lane that each worker reads from, `batch` groups of rows at a time (0: the usual number); mixing: how
                many of both are wanted if memory allows, best first
    ahead       extra threads per worker read from them and score
    whole       number of weights of the whole model, where that is not `dimension`
    climbing    the workers of a cluster score rows, and the client takes all steps (streamcut.execution.dask.climbing)
    held        dense vectors in memory at a time, all counted, where the others are in scratch files; 0: all are in memory
    """

    dimension: int
    max_cuts: int = -1
    vectors: int = 1
    row_bytes: int = 0
    row_cache: tuple[int, int] = (0, 0)
    cached: str = "row cache"
    more: tuple[tuple[str, int], ...] = ()
    per_worker: tuple[tuple[str, int], ...] = ()
    block_rows: int | None = None
    between: tuple[tuple[str, int], ...] = ()
    streams: int = 1
    batch: int = 0
    mixing: tuple[Streamed, ...] = ()
    ahead: bool = False
    whole: int = 0
    held: int = 0
    row_arrays: tuple[int, ...] = ()
    climbing: bool = False

    @property
    def weights(self) -> int:
        """The number of weights of the model."""
        return self.whole or self.dimension

    @property
    def most_mixed(self) -> tuple[int, int]:
        """(streams, batch) of the best of `mixing`; (1, 0) if it is empty."""
        return (self.mixing[0].streams, self.mixing[0].batch) if self.mixing else (1, 0)

    def planned(self, plan: Callable[[Needs], MemoryPlan]) -> MemoryPlan:
        """The plan by `plan`, with several places if possible: if need be, the row state goes to disk for that, unless passes
        after the first read nothing.

        Raises MemoryBudgetError when nothing fits, however little is read at once.
        """
        least, refused, found, aside = None, None, None, None
        try:
            least = plan(self)
        except MemoryBudgetError as error:
            refused = error
        besides = tuple(each for each in self.per_worker if each[0] != JOINED)
        for streams, size, always, ahead, batch in self.mixing:
            if least is not None and not (always or least.reads_again or least.row_cache == 0):
                continue
            more = (*besides, (f"rows of {streams} streams", size))
            needs = replace(self, streams=streams, batch=batch, ahead=ahead, per_worker=more, mixing=())
            try:
                mixed = plan(needs)
            except MemoryBudgetError as error:
                refused = refused and error
                continue
            cached = least is None or always or mixed.row_cache >= _CACHED * least.row_cache
            if cached and (least is None or mixed.spilled == least.spilled):
                found = found or needs
                if least is None or mixed.reads_again == least.reads_again:
                    found = needs
                    break
            elif cached and least is not None and least.reads_again:
                aside = aside or needs
        if (best := found or aside) is not None:
            return plan(best)
        if least is None:
            raise refused  # type: ignore[misc]
        return least


@dataclass(frozen=True, slots=True)
class Machine:
    """What a plan divides, and among how many threads.

    budget     bytes; base: bytes of the process now, kernels loaded
    workers    threads
    in_memory  the rows are the caller's arrays, already counted in `base`
    lower      options that reduce the needs, named in a refusal
    slack      Python objects, stacks and what the allocator keeps
    processes  that share the budget, each of which may take a little more in the next run
    """

    budget: int
    base: int
    workers: int
    in_memory: bool = False
    lower: tuple[str, ...] = ("--max-cuts", "--workers")
    slack: int = SLACK
    processes: int = 1


@dataclass(frozen=True, slots=True, repr=False)
class MemoryPlan(Shown):
    """`lines` are (what, bytes) of the necessities; `pinned` are the shards kept decoded in the rest of `budget`.

    spilled    the row state does not fit and lives in scratch files
    row_cache  bytes for copies of the rows that matter most, all lanes together; one of the lines
    streams    places of a lane that each worker reads from; batch: groups of rows in a batch then, 0: the usual number
    ahead      extra threads per worker read from them and score
    reads_again  whether passes after the first read data
    parted      shards are read in parts (streamcut.execution.parted), which `pinned` counts
    climbing    as in Needs
    """

    budget: int
    lines: tuple[tuple[str, int], ...]
    pinned: frozenset[int]
    pinned_bytes: int
    spilled: bool = False
    row_cache: int = 0
    streams: int = 1
    batch: int = 0
    ahead: bool = False
    reads_again: bool = True
    parted: bool = False
    climbing: bool = False

    @property
    def needed(self) -> int:
        """Bytes of the necessities."""
        return sum(size for _, size in self.lines)

    @property
    def total(self) -> int:
        """Bytes that the run will take, at most `budget`."""
        return self.needed + self.pinned_bytes

    def shown(self) -> dict[str, Any]:
        sizes = {"total": self.total, "budget": self.budget, "row_cache": self.row_cache, "pinned": self.pinned_bytes}
        return {name: format_bytes(size) for name, size in sizes.items()} | {"spilled": self.spilled}

    def _repr_html_(self) -> str:
        return html_table("MemoryPlan", self.describe())

    def describe(self, shards: int | None = None) -> list[tuple[str, str]]:
        """The plan as (what, size) rows for people; `shards`: their number in the data."""
        rows = [(what, format_bytes(size)) for what, size in self.lines]
        of = "" if shards is None else f" of {shards}"
        rows.append((f"pinned shards ({len(self.pinned)}{of})", format_bytes(self.pinned_bytes)))
        rows.append(("total", format_bytes(self.total)))
        rows.append(("budget", format_bytes(self.budget)))
        return rows


def plan_memory(needs: Needs, manifest: Manifest, machine: Machine) -> MemoryPlan:
    """Divide the budget of `machine` among the `needs` of a run on the data of this manifest.

    Necessities first, then the row state (on disk if it does not fit), the row cache, and as many pinned shards as fit.
    Raises MemoryBudgetError with the minimum, and the options that lower it.
    """
    budget, workers, in_memory = machine.budget, machine.workers, machine.in_memory
    row_bytes, cached = needs.row_bytes, needs.cached
    streamed: dict[str, Any] = {"streams": needs.streams, "batch": needs.batch, "ahead": needs.ahead}
    sizes = [shard_bytes(manifest, shard) for shard in manifest.shards]
    everything = frozenset(range(len(sizes)))
    n_rows = manifest.statistics.n_rows
    block = _block_rows(needs, manifest)
    in_progress = workers * block * _TEMPORARIES
    lines = [
        *[("interpreter, libraries, kernels", machine.base)] * (machine.base > 0),
        *_vectors(needs, workers),
        *needs.more,
        *[(f"{what}, {workers} workers", workers * size) for what, size in needs.per_worker],
        *[(f"rows in progress, {workers} workers", in_progress)] * (in_progress > 0),
        ("slack", machine.slack),
    ]
    least, most = needs.row_cache
    if least > 0:
        lines.append((cached, least))
    row_state = (f"row state, {row_bytes} bytes × {n_rows:,} rows", row_bytes * n_rows)
    in_rows, kept = [row_state] * (row_bytes > 0), list[tuple[str, int]]()
    if not in_memory:
        longest = max(length for shard in manifest.shards for length in (a.stored_bytes for a in shard.arrays.values()))
        reading = ("reading", workers * longest)
        complete = [*lines, *in_rows, reading, *_beyond(needs.between, in_progress), *_more_cache(cached, least, most)]
        kept = [*complete, ("all rows", sum(sizes))]
        if _sum(kept) <= budget:  # nothing is read again, no worker needs buffers
            plan = MemoryPlan(budget, tuple(complete), everything, sum(sizes), row_cache=most, **streamed)
            return replace(plan, reads_again=False)
        buffers = workers * needs.streams * buffer_bytes(manifest)
        lines += [(f"buffers of {workers} workers", buffers), *_beyond(needs.between, in_progress + buffers)]
    else:
        lines += _beyond(needs.between, in_progress)
    mapped = workers * (_mapped(needs, n_rows) + block * row_bytes)
    spilled = mapped < row_state[1] and _sum([*lines, row_state]) > budget
    lines += [(f"{row_state[0]}, in scratch files", mapped)] if spilled else in_rows
    if _sum(lines) > budget:
        if kept and _sum(kept) < _sum(lines):  # of few rows
            raise _refusal(machine, kept, "")
        by_shard = 0 if in_memory else buffers + in_progress * (needs.block_rows is None)
        raise _refusal(machine, lines, _smaller_shards(manifest, budget - _sum(lines), by_shard))
    most = min(most, least + budget - _sum(lines))
    lines.extend(_more_cache(cached, least, most))
    if in_memory:
        return MemoryPlan(budget, tuple(lines), everything, 0, spilled, most, **streamed, reads_again=False)
    pinned, used, free = set(), 0, budget - _sum(lines)
    for shard, size in enumerate(sizes):
        if used + size <= free:
            pinned.add(shard)
            used += size
    return MemoryPlan(budget, tuple(lines), frozenset(pinned), used, spilled, most, **streamed)


def _vectors(needs: Needs, workers: int) -> list[tuple[str, int]]:
    """Memory of the dense vectors."""
    size, vector = f"× {needs.dimension:,} features", 8 * needs.dimension
    if needs.held:
        return [(f"weights and sums {needs.held} {size}, others in scratch files", needs.held * vector)]
    found = [(f"weights and sums (8 + {needs.vectors} × {workers} workers) {size}", (8 + needs.vectors * workers) * vector)]
    return [*found, *[(f"bundle of {needs.max_cuts} cuts {size}", (needs.max_cuts + 1) * vector)] * (needs.max_cuts >= 0)]


def _block_rows(needs: Needs, manifest: Manifest) -> int:
    """The most rows that a worker visits at once."""
    most_rows = max(shard.rows for shard in manifest.shards) if needs.block_rows is None else needs.block_rows
    return min(manifest.statistics.n_rows, max(ROW_BLOCK, most_rows))


def _mapped(needs: Needs, n_rows: int) -> int:
    """Bytes of scratch files with the row state that a worker has mapped, besides the rows in progress."""
    if needs.row_arrays:
        return sum(min(SPILLED_BYTES, size * n_rows) for size in needs.row_arrays)
    return min(needs.row_bytes // 8, _ROW_ARRAYS) * SPILLED_BYTES


def _beyond(between: tuple[tuple[str, int], ...], free: int) -> list[tuple[str, int]]:
    """The part of the work between passes that exceeds what passes leave free."""
    return [(f"{what}, beyond what passes leave free", size - free) for what, size in between if size > free]


def _more_cache(cached: str, least: int, most: int) -> list[tuple[str, int]]:
    return [(cached, most - least)] if most > least else []


def _sum(lines: list[tuple[str, int]]) -> int:
    return sum(size for _, size in lines)


def _smaller_shards(manifest: Manifest, free: int, by_shard: int) -> str:
    """The option of `convert` with which a run that lacks −`free` bytes would fit; `by_shard` bytes are proportional to the
    shard size. Empty where that is not enough."""
    left, entries = by_shard + free - _SPREAD, max(shard.nnz for shard in manifest.shards)
    if left < _LEAST_PART * by_shard:
        return ""
    return f", or convert the data again with {given('shard-nnz', 1 << int(math.log2(max(1.0, entries * left / by_shard))))}"


def _refusal(machine: Machine, lines: list[tuple[str, int]], smaller: str) -> MemoryBudgetError:
    least, lower = _sum(lines) + machine.processes * _SPREAD, machine.lower
    shown = f"{math.ceil(least / 1e6)}MB" if least < 1e10 else f"{math.ceil(least / 1e9)}GB"  # as --memory takes it, rounded up
    parts = "; ".join(f"{what}: {format_bytes(size)}" for what, size in lines)
    error = MemoryBudgetError(
        f"--memory: {format_bytes(machine.budget)} is too little: this run needs at least {shown} ({parts}). "
        f"Raise --memory{', or lower one of ' * bool(lower)}{', '.join(lower)}{smaller}"
    )
    error.least = least
    return error
