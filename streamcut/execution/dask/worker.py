"""What runs in the processes of a Dask cluster: lanes of a pass, on the runner that threads use too.

A pass comes as a file in the shared folder, read once by each process. While the file is there the pass is wanted. Those with
row caches stay there until no lane may have to be done again from where its cache was filled.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import streamcut
from streamcut.compiling import compiler
from streamcut.errors import CorruptError, NotFoundError, UsageError
from streamcut.execution.cache_passes import RecallPass
from streamcut.execution.dask.cache_slots import Slot, Slots
from streamcut.execution.dask.shared_rows import CACHED, LaneRows, RowFiles
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Pass, row_caches
from streamcut.execution.runner import Interrupted, Runner
from streamcut.execution.scaled import scaled
from streamcut.files import failpoint
from streamcut.io.manifest import Manifest
from streamcut.io.opening import open_dataset
from streamcut.machine import machine_memory, resident_bytes


@dataclass(frozen=True, slots=True)
class Store:
    """A data set that every process opens for itself: `path`, the fingerprint that it must have, how its values are scaled."""

    path: str
    fingerprint: str
    scale: str = "none"


@dataclass(frozen=True, slots=True)
class Job:
    """A pass and what it needs to know.

    pins   the shards that each worker (by address) keeps decoded
    capacity  the row caches that it may have in memory
    past   files of the passes that row caches have seen since they were filled
    """

    number: int
    work: Pass
    store: Store
    lanes: Lanes
    rows: RowFiles
    pins: dict[str, frozenset[int]]
    capacity: dict[str, int]
    past: tuple[str, ...] = ()


@dataclass(slots=True)
class LaneResult:
    """The partial sum of a lane, and which arrays of its row state have a new version."""

    lane: int
    partial: Any
    traffic: Traffic
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """A worker process: bytes resident now, available on its machine, and the name of that machine."""

    resident: int
    available: int
    host: str


def ignore_interrupts() -> None:
    """Ctrl-C in a terminal goes to all processes; the client alone is to answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare(store: Store, probe: str, version: str, warm_up: Callable[[Manifest], None]) -> WorkerMemory:
    """Open the store, load the kernels and tell of memory. `probe` is a file that the client made in the shared folder.

    Raises UsageError for another version of streamcut or a folder that isn't shared, NotFoundError or CorruptError for the store.
    """
    if streamcut.__version__ != version:
        raise UsageError(f"a worker runs streamcut {streamcut.__version__}, here is {version}; install the same everywhere")
    if not os.path.exists(probe):
        raise UsageError(f"--scratch: a worker on {os.uname().nodename} does not see {Path(probe).parent}; give a shared folder")
    _slots.clear()
    compiler.run(warm_up, _feed(store, frozenset()).data.manifest)
    return WorkerMemory(resident_bytes(), machine_memory()[1], os.uname().nodename)


def run_lanes(place: str, lanes: tuple[int, ...], address: str) -> list[LaneResult]:
    """Run the pass in the file `place` over `lanes`, on the worker at `address`. Raises Interrupted when it is not wanted."""
    job = _job(place)
    runner = _runner(_feed(job.store, job.pins.get(address, frozenset())), place)
    if row_caches(job.work):
        return [_cached_lane(runner, job, place, lane, job.capacity.get(address, 1)) for lane in lanes]
    return [_lane(runner, job, lane, job.work) for lane in lanes]


def _lane(runner: Runner, job: Job, lane: int, work: Any) -> LaneResult:
    rows, partial, traffic = _run(runner, job, lane, work)
    return LaneResult(lane, partial, traffic, rows.keep(job.number))


def _run(runner: Runner, job: Job, lane: int, work: Any) -> tuple[LaneRows, Any, Traffic]:
    start, stop = job.lanes.rows(lane)
    rows = LaneRows(job.rows, lane, start, stop, work.row_arrays)
    runner.lanes, runner.row_state, runner.rows = Lanes((start, stop)), rows, rows.arrays  # type: ignore[assignment]
    partial, report = runner.run(work)
    return rows, partial, report.traffic


def _cached_lane(runner: Runner, job: Job, place: str, lane: int, capacity: int) -> LaneResult:
    work: Any = job.work
    start, stop = job.lanes.rows(lane)
    with _slots.take(job.rows.folder, lane, job.past, capacity, work.caches[start]) as slot:
        _catch_up(runner, job, lane, slot)
        failpoint("train.filling" if work.needs_data else "train.cached")
        result = _lane(runner, job, lane, replace(work, caches={start: slot.cache}))
        slot.seen = (*job.past, place)
        if work.needs_data:
            cached = np.zeros(stop - start, np.bool_)
            cached[slot.cache.numbers - start] = True
            job.rows.write(CACHED, lane, job.number, cached)
            result.changed += (CACHED,)
    return result


def _catch_up(runner: Runner, job: Job, lane: int, slot: Slot) -> None:
    """Repeat the passes that the cache has not seen; the row state is still as the first of them left it."""
    start, stop = job.lanes.rows(lane)
    for place in job.past[len(slot.seen) :]:
        work: Any = replace(_read(place).work, caches={start: slot.cache})  # type: ignore[type-var]
        if work.needs_data:
            filling = replace(work, limits={start: np.inf})
            work = RecallPass(filling, job.rows.read(CACHED, lane, stop - start), start)
        _run(runner, job, lane, work)
        slot.seen += (place,)


_slots = Slots()
_lock = threading.Lock()
_last_job: tuple[str, Job] | None = None
_feeds: dict[Store, Feed] = {}
_own = threading.local()  # each thread's `runner`, with its buffers, and the `place` of its pass


def _job(place: str) -> Job:
    global _last_job
    with _lock:
        if _last_job is None or _last_job[0] != place:
            _last_job = (place, _read(place))
        return _last_job[1]


def _read(place: str) -> Job:
    try:
        with open(place, "rb") as file:
            return pickle.load(file)
    except FileNotFoundError:
        raise Interrupted from None


def _feed(store: Store, pins: frozenset[int]) -> Feed:
    """The open store. Pinned shards are read again when the worker is told to pin others."""
    with _lock:
        feed = _feeds.get(store)
        if feed is None:
            _feeds.clear()
            try:
                data = scaled(open_dataset(store.path), store.scale)
            except NotFoundError as error:
                raise NotFoundError(f"a worker on {os.uname().nodename} does not find the store: {error}") from None
            if data.manifest.fingerprint != store.fingerprint:
                raise CorruptError(f"{store.path}: a worker on {os.uname().nodename} sees other data there than the client")
            feed = _feeds[store] = Feed(data)
        if pins and feed.pinned != pins:
            feed = _feeds[store] = Feed(feed.data, pins)
        return feed


def _runner(feed: Feed, place: str) -> Runner:
    _own.place = place
    runner = getattr(_own, "runner", None)
    if runner is None or runner.feed is not feed:
        nothing = LaneRows(RowFiles(""), 0, 0, 0)
        runner = Runner(feed, Lanes((0, 0)), row_state=nothing, stop=lambda: not os.path.exists(_own.place))  # type: ignore[arg-type]
        _own.runner = runner
    return runner
