"""The memory plan of a cluster: what client and worker processes need, and which shards and row caches each worker keeps."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from streamcut.errors import MemoryBudgetError
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import Machine, MemoryPlan, Needs, plan_memory
from streamcut.execution.runner import ROW_BLOCK
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import first_rows, shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes

LANES_AHEAD = 2  # lanes assigned per thread of the cluster: the most partial sums in flight
_SLACK = 24 << 20  # per process: Python objects, messages, thread stacks
_TEMPORARIES = 24  # bytes per row of the current block: scores and coefficients


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker process: its address, threads, bytes resident before any work, and bytes that it may use in total."""

    address: str
    threads: int
    base: int
    usable: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The assignment: the worker of each lane, and per worker the shards to pin, the row caches to keep, and its threads."""

    worker_of: dict[int, str]
    pins: dict[str, frozenset[int]]
    capacity: dict[str, int]
    threads_of: dict[str, int]

    def crowded(self) -> dict[str, tuple[int, int]]:
        """{worker: (row caches that it keeps, its lanes)} where it has more lanes than caches."""
        lanes = Counter(self.worker_of.values())
        return {at: (caches, lanes[at]) for at, caches in self.capacity.items() if caches < lanes[at]}

    def tasks(self, *, one_by_one: bool) -> dict[str, deque[tuple[int, ...]]]:
        """The lanes of each task by worker: one lane, or all lanes of the worker."""
        lanes_of = _lanes_of(self.worker_of)
        return {at: deque([(lane,) for lane in lanes] if one_by_one else [tuple(lanes)]) for at, lanes in lanes_of.items()}

    def neighbours(self) -> dict[str, str]:
        """{worker: the worker with a copy of its row state}, on another machine if there is one; empty for a single worker."""
        by_host: dict[str, list[str]] = {}
        for address in sorted(self.capacity):
            by_host.setdefault(host_of(address), []).append(address)
        ring = [address for row in zip_longest(*by_host.values()) for address in row if address is not None]
        return dict(zip(ring, [*ring[1:], ring[0]], strict=True)) if len(ring) > 1 else {}


@dataclass(frozen=True, slots=True)
class ClusterNeeds:
    """What a run `needs` of the processes of a cluster; `row_cache` bytes are for all lanes, divided equally."""

    needs: Needs
    manifest: Manifest
    lanes: Lanes
    row_cache: int = 0

    @property
    def lane_cache(self) -> int:
        return -(-self.row_cache // len(self.lanes))

    def client(self, base: int, threads: int) -> list[tuple[str, int]]:
        """(what, bytes) for the process that runs the solver on a cluster of `threads` threads."""
        dimension, max_cuts = self.needs.dimension, self.needs.max_cuts
        vector = 8 * dimension
        sums = LANES_AHEAD * threads * self.needs.vectors
        return [
            ("interpreter, libraries, kernels", base),
            (f"weights and sums (10 + {sums}) × {dimension:,}", (10 + sums) * vector),
            *[(f"bundle of {max_cuts} cuts × {dimension:,} features", (max_cuts + 1) * vector)] * (max_cuts >= 0),
            *self.needs.more,
            ("slack", _SLACK),
        ]

    def worker_lines(self, worker: WorkerProcess, lanes: int = 0) -> list[tuple[str, int]]:
        """(what, bytes) for a worker process that keeps the shards of `lanes` lanes, without pinned shards.

        One row cache per thread is required; with more lanes, caches replace each other.
        """
        bounds = self.lanes.bounds
        longest = max(stop - start for start, stop in pairwise(bounds))
        block = min(longest, max(ROW_BLOCK, *(shard.rows for shard in self.manifest.shards)))
        t, dimension, row_bytes = worker.threads, self.needs.dimension, self.needs.row_bytes
        sums = (LANES_AHEAD + 1) * t * self.needs.vectors
        return [
            ("interpreter, libraries, kernels", worker.base),
            (f"weights and sums (4 + {sums}) × {dimension:,}", (4 + sums) * 8 * dimension),
            *[(f"{what}, {t} threads", t * size) for what, size in self.needs.per_worker],
            (f"row state of a lane, {row_bytes} bytes × {longest:,} rows × {t} threads", t * row_bytes * longest),
            (f"rows in progress, {t} threads", t * block * _TEMPORARIES),
            (f"buffers of {t} threads", t * self.needs.streams * buffer_bytes(self.manifest)),
            *[(f"row cache of a lane × {max(t, lanes)}", max(t, lanes) * self.lane_cache + t * longest)] * (self.row_cache > 0),
            ("slack", _SLACK),
        ]

    def check(self, worker: WorkerProcess, lanes: int = 0) -> None:
        """Raise MemoryBudgetError when a worker with `lanes` lanes may use less than it needs."""
        lines = self.worker_lines(worker, lanes)
        if _sum(lines) <= worker.usable:
            return
        parts = "; ".join(f"{what}: {format_bytes(size)}" for what, size in lines)
        least = math.ceil(_sum(lines) / 1e6)
        raise MemoryBudgetError(
            f"the worker at {worker.address} may use {format_bytes(worker.usable)}, but this run needs at least {least}MB there "
            f"({parts}). Give it more memory (70 % of a worker's memory limit may be used), fewer threads, or smaller shards"
        )

    def placement(self, workers: list[WorkerProcess], before: Placement | None = None) -> Placement:
        """Lanes, shards and row caches for `workers`; lanes stay where they were `before` as far as is fair."""
        worker_of, lanes_of = place_lanes(len(self.lanes), workers, {} if before is None else before.worker_of)
        pins = {worker.address: self.pins(worker, lanes_of[worker.address])[0] for worker in workers}
        capacity = {worker.address: self.capacity(worker, len(lanes_of[worker.address])) for worker in workers}
        return Placement(worker_of, pins, capacity, {worker.address: worker.threads for worker in workers})

    def capacity(self, worker: WorkerProcess, lanes: int) -> int:
        """The number of row caches that a worker with `lanes` lanes keeps: at least one per thread."""
        free = worker.usable - _sum(self.worker_lines(worker))
        more = max(lanes - worker.threads, 0)
        return worker.threads + (min(more, free // self.lane_cache) if self.row_cache else 0)

    def pins(self, worker: WorkerProcess, lanes: list[int]) -> tuple[frozenset[int], int]:
        """(shards, their bytes): the shards of the worker's `lanes`, as many as fit next to their row caches."""
        first = first_rows(self.manifest)
        free = worker.usable - _sum(self.worker_lines(worker, self.capacity(worker, len(lanes))))
        chosen: set[int] = set()
        used = 0
        for lane in lanes:
            start, stop = self.lanes.rows(lane)
            for shard, info in enumerate(self.manifest.shards):
                if first[shard] >= stop or first[shard + 1] <= start or shard in chosen:
                    continue
                size = shard_bytes(self.manifest, info)
                if used + size <= free:
                    chosen.add(shard)
                    used += size
        return frozenset(chosen), used


@dataclass(frozen=True, slots=True)
class ScoringNeeds(ClusterNeeds):
    """The same where workers read and score, and the client takes all steps; the lanes are the shards."""

    def worker_lines(self, worker: WorkerProcess, lanes: int = 0) -> list[tuple[str, int]]:
        """(what, bytes) for a worker process, without pinned shards."""
        t, dimension, ahead = worker.threads, self.needs.dimension, LANES_AHEAD * worker.threads
        largest = max(shard_bytes(self.manifest, shard) + self.needs.row_bytes * shard.rows for shard in self.manifest.shards)
        return [
            ("interpreter, libraries, kernels", worker.base),
            (f"weights, as they come and as they are, 3 × {dimension:,}", 3 * 8 * dimension),
            (f"buffers of {t} threads", t * buffer_bytes(self.manifest)),
            (f"rows scored and on their way, {ahead} shards", ahead * largest),
            ("slack", _SLACK),
        ]


def climbing(
    wanted: ClusterNeeds, workers: list[WorkerProcess], *, budget: int, base: int, local: bool
) -> tuple[ScoringNeeds, list[WorkerProcess], MemoryPlan]:
    """(what workers need, the workers, the plan of the client, which takes all steps). Raises MemoryBudgetError.

    A local cluster divides the budget: workers keep shards decoded in what the client leaves.
    """
    needs, manifest = wanted.needs, wanted.manifest
    found = ScoringNeeds(needs, manifest, Lanes(tuple(first_rows(manifest))))
    sent, ahead = max(needs.row_bytes * shard.rows for shard in manifest.shards), LANES_AHEAD * sum(w.threads for w in workers)
    theirs = [_sum(found.worker_lines(worker)) for worker in workers]
    more = (
        (f"row state on its way, {ahead} shards", ahead * sent),
        ("rows on their way", max(shard_bytes(manifest, shard) for shard in manifest.shards)),
        *[(f"worker {number}", size) for number, size in enumerate(theirs)] * local,
    )
    machine = Machine(budget, base, 1, lower=("--max-cuts", "--workers"))
    plan = plan_memory(replace(needs, more=(*needs.more, *more)), manifest, machine)
    if needs.streams == 1:
        raise MemoryBudgetError(
            f"--memory: {format_bytes(budget)} is too little for rows from several places of the data, which a single lane on a "
            "cluster takes. Raise --memory, or give --lanes=2"
        )
    if local:
        each = plan.pinned_bytes // len(workers)
        workers = [replace(worker, usable=size + each) for worker, size in zip(workers, theirs, strict=True)]
    else:
        for worker in workers:
            found.check(worker)
    pinned = plan.pinned_bytes * local
    return found, workers, replace(plan, pinned=frozenset(), pinned_bytes=pinned, reads_again=True, climbing=True)


def place_lanes(
    lanes: int, workers: list[WorkerProcess], before: Mapping[int, str] | None = None
) -> tuple[dict[int, str], dict[str, list[int]]]:
    """({lane: address}, {address: lanes}): consecutive lanes go to successive threads, so that those running are on all workers.

    Lanes stay where they were `before`, unless their worker is gone or has more than its share by threads; others go to the
    worker furthest below its share.
    """
    ordered = sorted(workers, key=lambda worker: worker.address)
    most = max(worker.threads for worker in ordered)
    slots = [worker.address for thread in range(most) for worker in ordered if worker.threads > thread]
    wanted = Counter(slots[lane % len(slots)] for lane in range(lanes))
    worker_of = {}
    for lane, address in sorted((before or {}).items()):
        if wanted[address] > 0:
            wanted[address] -= 1
            worker_of[lane] = address
    free = _in_turn(slots, wanted)
    worker_of = {lane: worker_of[lane] if lane in worker_of else next(free) for lane in range(lanes)}
    lanes_of = _lanes_of(worker_of)
    return worker_of, {worker.address: lanes_of.get(worker.address, []) for worker in workers}


def _in_turn(slots: list[str], wanted: Counter[str]) -> Iterator[str]:
    """The addresses of `slots` in cyclic order, each as often as `wanted`."""
    while wanted.total():
        for address in slots:
            if wanted[address] > 0:
                wanted[address] -= 1
                yield address


def _lanes_of(worker_of: Mapping[int, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for lane, address in worker_of.items():
        found.setdefault(address, []).append(lane)
    return found


def host_of(address: str) -> str:
    """The machine of a worker's address."""
    return address.rpartition("://")[2].rpartition(":")[0]


def shares(
    needs: ClusterNeeds, workers: list[WorkerProcess], *, budget: int, base: int
) -> tuple[list[WorkerProcess], MemoryPlan]:
    """(workers on the client's machine, each with its share of `budget`; the plan of all processes).

    The row caches get between the least and the most bytes needed. Raises MemoryBudgetError with the minimum.
    """
    client = needs.client(base, sum(worker.threads for worker in workers))
    _, lanes_of = place_lanes(len(needs.lanes), workers)
    most = max(len(lanes) for lanes in lanes_of.values())  # any worker may have this many after another has died
    free = budget - _sum(client) - sum(_sum(replace(needs, row_cache=1).worker_lines(worker, most)) for worker in workers)
    caches = sum(max(worker.threads, most) for worker in workers)
    needs = replace(needs, row_cache=_between(needs.needs.row_cache, free // caches * len(needs.lanes)))
    least = [_sum(needs.worker_lines(worker, most)) for worker in workers]
    total = _sum(client) + sum(least)
    if total > budget:
        raise MemoryBudgetError(
            f"--memory: {format_bytes(budget)} is too little for a client and {len(workers)} workers: this run needs at least "
            f"{math.ceil(1.02 * total / 1e6)}MB (see `train --dry-run -v`). Raise --memory, or lower --workers or --max-cuts"
        )
    each = (budget - total) // len(workers)
    changed = [replace(worker, usable=size + each) for worker, size in zip(workers, least, strict=True)]
    lines = [(f"client: {what}", size) for what, size in client]
    for number, worker in enumerate(changed):
        lines += [(f"worker {number}: {what}", size) for what, size in needs.worker_lines(worker, len(lanes_of[worker.address]))]
    found = MemoryPlan(budget, tuple(lines), *_pinned(needs, changed), row_cache=needs.row_cache, streams=needs.needs.streams)
    return changed, found


def _between(row_cache: tuple[int, int], fits: int) -> int:
    least, most = row_cache
    return max(least, min(most, fits))


def _pinned(needs: ClusterNeeds, workers: list[WorkerProcess]) -> tuple[frozenset[int], int]:
    _, lanes_of = place_lanes(len(needs.lanes), workers)
    found = [needs.pins(worker, lanes_of[worker.address]) for worker in workers]
    return frozenset().union(*(shards for shards, _ in found)), sum(size for _, size in found)


def remote(needs: ClusterNeeds, workers: list[WorkerProcess], *, budget: int, base: int) -> MemoryPlan:
    """The plan of a client whose workers have their own limits and hold the `pinned` shards and the row caches, which get
    between the least and the most bytes needed. Raises MemoryBudgetError.
    """
    _, lanes_of = place_lanes(len(needs.lanes), workers)
    lanes = {worker: len(lanes_of[worker.address]) for worker in workers}
    smallest = replace(needs, row_cache=1)
    each = min((m.usable - _sum(smallest.worker_lines(m, lanes[m]))) // max(m.threads, lanes[m]) for m in workers)
    needs = replace(needs, row_cache=_between(needs.needs.row_cache, each * len(needs.lanes)))
    for worker in workers:
        needs.check(worker, lanes[worker])
    lines = needs.client(base, sum(worker.threads for worker in workers))
    total = _sum(lines)
    if total > budget:
        raise MemoryBudgetError(
            f"--memory: {format_bytes(budget)} is too little: the client needs {math.ceil(total / 1e6)}MB, workers excluded. "
            "Raise --memory, or lower --max-cuts"
        )
    pinned, _ = _pinned(needs, workers)
    return MemoryPlan(budget, tuple(lines), pinned, 0, row_cache=needs.row_cache, streams=needs.needs.streams)


def _sum(lines: list[tuple[str, int]]) -> int:
    return sum(size for _, size in lines)


def shards_of(taken: Iterable[int], lanes: Lanes, manifest: Manifest) -> str:
    """The shards that these lanes read, in words."""
    ranges = [lanes.rows(lane) for lane in taken]
    borders = enumerate(pairwise(first_rows(manifest)))
    read = [f"{shard:06d}" for shard, (a, b) in borders if any(a < stop and b > start for start, stop in ranges)]
    return f"the shards {', '.join(read)}"
