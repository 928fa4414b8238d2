"""The memory plan: arithmetic on the manifest, done before any work, kept by construction and shown line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from streamcut.errors import MemoryBudgetError
from streamcut.execution.row_state import SPILLED_BYTES
from streamcut.execution.runner import ROW_BLOCK
from streamcut.foundation.shown import Shown, html_table
from streamcut.foundation.systems import SPREAD, too_little
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes

_BESIDES = "what this process has besides"
BASE = 128 * 10**6  # of a process with NumPy, Numba and the kernels of a training
RESERVE = 24 << 20  # Python objects, stacks of threads, what the allocator keeps
_FOR_CACHE = 0.75  # of what is free; pinned shards have the rest, and give way where a process takes more than is declared
_ROW_ARRAYS = 5  # kinds of row state at most
_TEMPORARIES = 24  # bytes per row of the current block: scores and coefficients


class Streamed(NamedTuple):
    """Memory to read several streams of a lane at once (streamcut.execution.feed.Streams): bytes per worker.

    always  it pays even where a row cache keeps all rows in memory, so that passes cost arithmetic alone, and it gains more
            than the cache
    ahead   there are processors for extra threads that read and score ahead of each worker; their bytes are always counted, so
            that the result does not depend on the number of processors
    batch   groups of rows in a batch; 0: as many as without streams
    """

    streams: int = 1
    per_worker: int = 0
    always: bool = False
    ahead: bool = False
    batch: int = 0


_ONE_STREAM = Streamed()


@dataclass(frozen=True, slots=True)
class Needs:
    """The inputs of the memory plan.

    dimension   length of a dense vector; `vectors` of them for each worker, max_cuts + 1 in the bundle (−1: there is none)
    row_bytes   row state of one row
    row_cache   (least, most) bytes for copies of rows, or for what `cached` names
    more        (what, bytes) of anything else
    per_worker  (what, bytes) of anything else per thread, wherever it runs
    block_rows  rows visited at once, if more than usual; None: those of a whole shard
    streamed    how rows are read in several streams; mixing: what is wanted if memory allows, best first
    whole       number of weights of the whole model, where that is not `dimension`
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
    streamed: Streamed = _ONE_STREAM
    mixing: tuple[Streamed, ...] = ()
    whole: int = 0

    def planned(self, plan: Callable[[Needs], MemoryPlan]) -> MemoryPlan:
        """The plan by `plan`, with rows from several streams at once where that pays: as many, and as many rows, as fit next to a
        row cache that is no smaller than they are; if there is no room for one, as fit.

        Raises MemoryBudgetError when not even rows from one stream fit.
        """
        least = plan(self)
        if not self.mixing or not (self.mixing[0].always or least.reads_again or least.row_cache == 0):
            return least
        first = None
        for streamed in self.mixing:
            batches = (*self.per_worker, (f"rows of {streamed.streams} streams", streamed.per_worker))
            try:
                mixed = plan(replace(self, streamed=streamed, per_worker=batches))
            except MemoryBudgetError:
                continue
            if mixed.row_cache >= min(self.row_cache[1], streamed.per_worker):
                return mixed
            first = first or mixed
        return first or least


@dataclass(frozen=True, slots=True)
class Machine:
    """What a plan divides, and among how many threads.

    budget     bytes; base: declared bytes of a process of this kind, kernels loaded
    workers    threads
    in_memory  the rows are the caller's arrays
    lower      options that reduce the needs, named in a refusal
    besides    bytes that the process takes now besides `base` and the rows: they decide no plan, but what a refusal names
    """

    budget: int
    base: int
    workers: int
    in_memory: bool = False
    lower: tuple[str, ...] = ("--max-cuts", "--workers")
    besides: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class MemoryPlan(Shown):
    """`lines` are (what, bytes) of the necessities; `pinned` are the shards kept decoded in the rest of `budget`.

    spilled    the row state does not fit and lives in scratch files
    row_cache  bytes for copies of the rows that matter most, all lanes together; one of the lines
    streamed   how rows are read in several streams of a lane
    reads_again  whether passes after the first read data
    grows      bytes that a larger budget may add to the row cache
    shards     of the data
    """

    budget: int
    lines: tuple[tuple[str, int], ...]
    pinned: frozenset[int]
    pinned_bytes: int
    spilled: bool = False
    row_cache: int = 0
    streamed: Streamed = _ONE_STREAM
    reads_again: bool = True
    grows: int = 0
    shards: int = 0

    @property
    def needed(self) -> int:
        """Bytes of the necessities."""
        return sum(size for _, size in self.lines)

    @property
    def total(self) -> int:
        """Bytes that the run will take, at most `budget`."""
        return self.needed + self.pinned_bytes

    def shown(self) -> dict[str, object]:
        sizes = {"total": self.total, "budget": self.budget, "row_cache": self.row_cache, "pinned": self.pinned_bytes}
        return {name: format_bytes(size) for name, size in sizes.items()} | {"spilled": self.spilled}

    def _repr_html_(self) -> str:
        return html_table("MemoryPlan", self.describe())

    def describe(self) -> list[tuple[str, str]]:
        """The plan as (what, size) rows for people."""
        rows = [(what, format_bytes(size)) for what, size in self.lines]
        rows.append((f"pinned shards ({len(self.pinned)} of {self.shards})", format_bytes(self.pinned_bytes)))
        rows.append(("total", format_bytes(self.total)))
        rows.append(("budget", format_bytes(self.budget)))
        return rows


def plan_memory(needs: Needs, manifest: Manifest, machine: Machine) -> MemoryPlan:
    """Divide the budget of `machine` among the `needs` of a run on the data of this manifest, by declared numbers alone.

    Necessities first, then the row state (on disk if it does not fit). A fixed part of what they leave free, were there one
    worker, is for the row cache: its size decides bits. The rest is for pinned shards, which decide none, and give way to further
    workers and to what the process takes in fact (`with_resident`). Raises MemoryBudgetError with the minimum, and the options
    that lower it.
    """
    budget, (least, most) = machine.budget, needs.row_cache
    lines, spilled = _necessities(needs, manifest, machine)
    if (free := budget - _sum(lines)) < 0:
        raise _refusal(machine, lines)
    alone, _ = _necessities(needs, manifest, replace(machine, workers=1))
    if (more := max(0, min(most - least, int(_FOR_CACHE * (budget - _sum(alone)))))) > 0:
        lines.append((f"more of the {needs.cached}" if least else needs.cached, more))
        if (free := free - more) < 0:
            raise _refusal(machine, lines, grows=most - least - more)
    sizes = [shard_bytes(manifest, shard) for shard in manifest.shards]
    pinned = frozenset(range(len(sizes))) if machine.in_memory else _pinned(sizes, free)
    kept = 0 if machine.in_memory else sum(sizes[shard] for shard in pinned)
    again = len(pinned) < len(sizes)
    grows, cache = most - least - more, least + more
    return MemoryPlan(budget, tuple(lines), pinned, kept, spilled, cache, needs.streamed, again, grows, len(sizes))


def _necessities(needs: Needs, manifest: Manifest, machine: Machine) -> tuple[list[tuple[str, int]], bool]:
    """((what, bytes) of all that a run cannot do without, whether the row state is in scratch files)."""
    workers, n_rows = machine.workers, manifest.statistics.n_rows
    rows = needs.row_bytes * n_rows
    reading = 0 if machine.in_memory else workers * needs.streamed.streams * buffer_bytes(manifest)
    work = workers * (_block_rows(needs, manifest) * _TEMPORARIES + _sum(needs.per_worker))
    in_memory = sum(shard_bytes(manifest, shard) for shard in manifest.shards) * machine.in_memory
    lines = [
        ("interpreter, libraries, kernels", machine.base),
        ("rows in memory", in_memory),
        *_vectors(needs, workers),
        *needs.more,
        (f"blocks of rows of {workers} workers", work),
        (f"buffers of {workers} workers", reading),
        (needs.cached, needs.row_cache[0]),
        ("reserve", RESERVE),
    ]
    lines = [(what, size) for what, size in lines if size > 0]
    state = (f"row state, {needs.row_bytes} bytes × {n_rows:,} rows", rows)
    mapped = workers * (_ROW_ARRAYS * SPILLED_BYTES + _block_rows(needs, manifest) * needs.row_bytes)
    spilled = mapped < rows and _sum([*lines, state]) > machine.budget
    return [*lines, *[(f"{state[0]}, in scratch files", mapped) if spilled else state] * (rows > 0)], spilled


def _pinned(sizes: list[int], free: int) -> frozenset[int]:
    """The first shards that fit in `free` bytes."""
    pinned = set[int]()
    for shard, size in enumerate(sizes):
        if size <= free:
            pinned.add(shard)
            free -= size
    return frozenset(pinned)


def with_resident(plan: MemoryPlan, manifest: Manifest, machine: Machine) -> MemoryPlan:
    """`plan` in a process that takes more than declared: fewer shards are pinned, nothing else changes.

    Raises MemoryBudgetError when that is not enough.
    """
    if machine.besides <= 0:
        return plan
    lines = (*plan.lines, (_BESIDES, machine.besides))
    if (free := plan.budget - _sum(lines)) < 0:
        raise _refusal(machine, list(plan.lines), grows=plan.grows)
    sizes = [shard_bytes(manifest, shard) for shard in manifest.shards]
    pinned = plan.pinned if plan.pinned_bytes == 0 else _pinned(sizes, free)
    kept = sum(sizes[shard] for shard in pinned) * (plan.pinned_bytes > 0)
    return replace(plan, lines=lines, pinned=pinned, pinned_bytes=kept)


def _vectors(needs: Needs, workers: int) -> list[tuple[str, int]]:
    """Memory of the dense vectors."""
    size, vector = f"× {needs.dimension:,} features", 8 * needs.dimension
    lines = [(f"weights and sums (8 + {needs.vectors} × {workers} workers) {size}", (8 + needs.vectors * workers) * vector)]
    return [*lines, *[(f"bundle of {needs.max_cuts} cuts {size}", (needs.max_cuts + 1) * vector)] * (needs.max_cuts >= 0)]


def _block_rows(needs: Needs, manifest: Manifest) -> int:
    """The most rows that a worker visits at once."""
    most_rows = max(shard.rows for shard in manifest.shards) if needs.block_rows is None else needs.block_rows
    return min(manifest.statistics.n_rows, max(ROW_BLOCK, most_rows))


def _sum(lines: Iterable[tuple[str, int]]) -> int:
    return sum(size for _, size in lines)


def _refusal(machine: Machine, lines: list[tuple[str, int]], *, grows: int = 0) -> MemoryBudgetError:
    """`grows`: bytes that a larger budget may add to the row cache, which leaves less than all of it for the last line."""
    if machine.besides > 0:  # which differs a little from run to run: what a refusal names must do in the next
        lines = [*lines, (_BESIDES, machine.besides + SPREAD)]
    least, lower = _sum(lines), machine.lower
    if grows:
        least = min(least + grows, machine.budget + int((least - machine.budget) / (1.0 - _FOR_CACHE)))
    why = "; ".join(f"{what}: {format_bytes(size)}" for what, size in lines)
    return too_little(machine.budget, least, why, f"{', or lower one of ' * bool(lower)}{', '.join(lower)}")
