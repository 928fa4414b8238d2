"""What runs in the processes of a Dask cluster: lanes of a pass, on the same runner as on threads.

A pass arrives as bytes with its lanes, and each process keeps it in its own file. Passes with row caches are kept until no lane
may have to be repeated from the filling of its cache. A pass is wanted as long as Dask wants its task.

Where workers own the row state, a lane's files are fetched from their holders if missing here, and copied to a second worker
before the lane counts as done: so losing one worker costs only the lanes in progress there.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import distributed
import numpy as np
from distributed.utils import sync

import streamcut
from streamcut.errors import CorruptError, DiskFullError, NotFoundError, UsageError
from streamcut.execution.cache_passes import RecallPass
from streamcut.execution.dask import ranges, row_exchange
from streamcut.execution.dask.cache_slots import Slot, Slots
from streamcut.execution.dask.logs import tell_ours_once
from streamcut.execution.dask.shared_rows import CACHED, LaneRows, RowFiles
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.occurring import OccurringDataset, occurring
from streamcut.execution.passes import Pass, row_caches
from streamcut.execution.runner import Runner
from streamcut.execution.scaled import ScaledDataset, scaled
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.machine import machine_memory
from streamcut.foundation.opened import opened_file
from streamcut.foundation.systems import node, resident_bytes
from streamcut.io.dataset import Dataset
from streamcut.io.opening import open_dataset

tell_ours_once()


@dataclass(frozen=True, slots=True)
class Store:
    """A data set that every process opens for itself: `path`, the required fingerprint, how its values are scaled, and whether
    only occurring features are kept."""

    path: str
    fingerprint: str
    scale: str = "none"
    occurring: bool = False

    @classmethod
    def of(cls, data: Dataset) -> Store:
        """Where other processes find `data`."""
        assert data.path is not None
        path = data.path if "://" in data.path else os.path.abspath(data.path)
        below = data.inner if (fewer := isinstance(data, OccurringDataset)) else data
        scale = below.scale if isinstance(below, ScaledDataset) else "none"
        return cls(path, data.manifest.fingerprint, scale, fewer)

    def open(self) -> Dataset:
        """The data set. Raises NotFoundError, CorruptError."""
        data = scaled(open_dataset(self.path), self.scale)
        return occurring(data) if self.occurring else data


@dataclass(frozen=True, slots=True)
class Job:
    """A pass and its parameters.

    pins   the shards that each worker keeps decoded, by address
    capacity  the row caches that each may have in memory
    past   numbers of the passes that row caches have seen since they were filled
    aside  bytes of all its partial sums from which on their arrays are set aside (ranges.py)
    owned  the row state is in the workers' folders, that of a worker's lanes also at its neighbour
    """

    run: str
    number: int
    work: Pass
    store: Store
    lanes: Lanes
    rows: RowFiles
    pins: dict[str, frozenset[int]]
    capacity: dict[str, int]
    past: tuple[int, ...] = ()
    aside: int = 0
    owned: bool = False
    neighbours: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LaneResult:
    """The partial sum of a lane, the arrays of its row state with a new version, and the workers that have all of them.

    address  of the worker that ran it, where arrays of these shapes are set aside
    """

    lane: int
    partial: Any
    traffic: Traffic
    changed: tuple[str, ...]
    holders: tuple[str, ...] = ()
    address: str = ""
    aside: dict[str, ranges.Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """Instead of results: these passes, needed to rebuild a row cache, are not here."""

    passes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowsGone:
    """Instead of results: no remaining worker has the row state of this lane."""

    lane: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a new worker is told: the store, a file in the client's scratch folder, the version, and live clients."""

    store: Store
    probe: str
    version: str
    clients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """A worker process: bytes resident now and available on its machine, machine name, whether it sees the client's folder."""

    resident: int
    available: int
    host: str
    sees_scratch: bool


def ignore_interrupts() -> None:
    """Ctrl-C in a terminal reaches all processes; only the client handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare(greeting: Greeting, dask_worker: Any = None) -> WorkerMemory:
    """Open the store, load the kernels, prepare to exchange row state with other workers, and report memory.

    Raises UsageError for another version of streamcut, NotFoundError or CorruptError for the store.
    """
    if streamcut.__version__ != greeting.version:
        told = f"a worker runs streamcut {streamcut.__version__}, this process {greeting.version}"
        raise UsageError(f"{told}; install the same version everywhere")
    row_exchange.forget_others(greeting.clients)
    row_exchange.serve(dask_worker)
    _slots.clear()
    feed_of(greeting.store, frozenset())
    return WorkerMemory(resident_bytes(), machine_memory()[1], node(), os.path.exists(greeting.probe))


Answer = list[LaneResult] | Missing | RowsGone


def run_lanes(run: str, lanes: tuple[int, ...], numbers: tuple[int, ...], *passes: bytes) -> Answer:
    """Run the last of `passes` over `lanes`; earlier ones, by their `numbers`, may be needed for row caches.

    Raises Interrupted when the result is no longer wanted.
    """
    here = distributed.get_worker()
    folder = row_exchange.folder_of(run, here.local_directory)
    for number, body in zip(numbers, passes, strict=True):
        _save(folder / f"pass.{number}", body)
    job = _job(folder, numbers[-1])
    runner = _runner(feed_of(job.store, job.pins.get(here.address, frozenset())))
    results = []
    for lane in lanes:
        if job.owned and not _obtained(here, job, lane):
            return RowsGone(lane)
        try:
            cached = row_caches(job.work)
            capacity = job.capacity.get(here.address, 1)
            result = _cached_lane(runner, job, folder, lane, capacity) if cached else _lane(runner, job, lane, job.work)
        except _NoPassError:
            return Missing(tuple(number for number in job.past if not (folder / f"pass.{number}").exists()))
        result.address = here.address
        if job.aside:
            result.aside = ranges.set_aside(job.work, result.partial, folder, lane, job.number, job.aside // len(job.lanes))
        if job.owned:
            result.holders = _spread(here, job, lane, result.changed)
        results.append(result)
    return results


def run_range(run: str, number: int, asides: dict[str, ranges.Aside], part: int, parts: int) -> dict[str, np.ndarray] | None:
    """The sums over all lanes of a range of the arrays set aside; None when some are gone."""
    here = distributed.get_worker()
    job = _job(row_exchange.folder_of(run, here.local_directory), number)
    try:
        return sync(here.loop, ranges.added_up, here, run, number, job.work, asides, part, parts)
    except (OSError, TimeoutError):
        return None


def _obtained(here: Any, job: Job, lane: int) -> bool:
    """Whether all row state of `lane` is here, after fetching from other workers if necessary."""
    for (name, of), version in job.rows.versions.items():
        path = job.rows.path(name, lane, version)
        if of != lane or path.exists():
            continue
        for address in sorted(job.rows.holders[name, lane], key=row_exchange.unheard):
            try:
                if address != here.address and sync(here.loop, row_exchange.fetch, here, address, job.run, path.name):
                    break
            except (OSError, TimeoutError):
                continue
        else:
            return False
    return True


def _spread(here: Any, job: Job, lane: int, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Copy to this worker's neighbour the row state of `lane` that it lacks; returns the workers that now have all."""
    neighbour = job.neighbours.get(here.address)
    if neighbour is None or row_exchange.unheard(neighbour):
        return (here.address,)
    files = {name: version for (name, of), version in job.rows.versions.items() if of == lane}
    wanted = {name: v for name, v in files.items() if name not in changed and neighbour not in job.rows.holders[name, lane]}
    try:
        for name, version in {**wanted, **dict.fromkeys(changed, job.number)}.items():
            file = job.rows.path(name, lane, version).name
            sync(here.loop, row_exchange.push, here, neighbour, job.run, file)
    except (DiskFullError, MemoryError):
        raise
    except (OSError, TimeoutError):  # the neighbour is gone: the next pass chooses another
        return (here.address,)
    return here.address, neighbour


def _lane(runner: Runner, job: Job, lane: int, work: Any) -> LaneResult:
    rows, partial, traffic = _run(runner, job, lane, work)
    return LaneResult(lane, partial, traffic, rows.keep(job.number))


def _run(runner: Runner, job: Job, lane: int, work: Any) -> tuple[LaneRows, Any, Traffic]:
    start, stop = job.lanes.rows(lane)
    rows = LaneRows(job.rows, lane, start, stop, work.row_arrays)
    runner.lanes, runner.row_state, runner.rows = Lanes((start, stop)), rows, rows.arrays  # type: ignore[assignment]
    partial, report = runner.run(work)
    return rows, partial, report.traffic


def _cached_lane(runner: Runner, job: Job, folder: Path, lane: int, capacity: int) -> LaneResult:
    work: Any = job.work
    start, stop = job.lanes.rows(lane)
    with _slots.take(job.run, lane, job.past, job.number, capacity, work.caches[start], folder) as slot:
        _catch_up(runner, job, folder, lane, slot)
        failpoint("train.filling" if work.needs_data else "train.cached")
        result = _lane(runner, job, lane, replace(work, caches={start: slot.cache}))
        slot.seen = (*job.past, job.number)
        if work.needs_data:
            cached = np.zeros(stop - start, np.bool_)
            cached[slot.cache.numbers - start] = True
            job.rows.write(CACHED, lane, job.number, cached)
            result.changed += (CACHED,)
    return result


def _catch_up(runner: Runner, job: Job, folder: Path, lane: int, slot: Slot) -> None:
    """Repeat the passes that the cache has not seen; the row state is still as the first pass left it."""
    start, stop = job.lanes.rows(lane)
    for number in job.past[len(slot.seen) :]:
        work: Any = replace(_read(folder, number).work, caches={start: slot.cache})  # type: ignore[type-var]
        if work.needs_data:
            work = RecallPass(work, job.rows.read(CACHED, lane, stop - start), start)
        _run(runner, job, lane, work)
        slot.seen += (number,)


class _NoPassError(Exception):
    """A pass is not on this worker."""


_slots = Slots()
_lock = threading.Lock()
_last_job: tuple[Path, Job] | None = None
_feeds: dict[Store, Feed] = {}
_own = threading.local()  # each thread's `runner`, with its buffers, and its `task`


def _save(path: Path, body: bytes) -> None:
    if not path.exists():
        temporary = path.with_name(f".{path.name}.{threading.get_ident()}")
        with disk_full(path, len(body)):
            temporary.write_bytes(body)
        os.replace(temporary, path)


def _job(folder: Path, number: int) -> Job:
    """The job of this number; files not needed for it or later are removed."""
    global _last_job
    with _lock:
        if _last_job is None or _last_job[0] != folder or _last_job[1].number != number:
            job = _read(folder, number)
            if job.owned:
                job = replace(job, rows=replace(job.rows, folder=str(folder)))
            replace(RowFiles(str(folder)), versions=job.rows.versions).prune(number)
            for path in folder.glob("pass.*"):
                if int(path.suffix[1:]) < number and int(path.suffix[1:]) not in job.past:
                    path.unlink(missing_ok=True)
            _last_job = (folder, job)
        return _last_job[1]


def _read(folder: Path, number: int) -> Job:
    try:
        with opened_file(folder / f"pass.{number}") as file:
            return pickle.load(file)
    except FileNotFoundError:
        raise _NoPassError from None


def feed_of(store: Store, pins: frozenset[int]) -> Feed:
    """The open store. Pinned shards are reread when the set of pinned shards changes."""
    with _lock:
        feed = _feeds.get(store)
        if feed is None:
            _feeds.clear()
            try:
                data = store.open()
            except NotFoundError as error:
                raise NotFoundError(f"a worker on {node()} does not find the store: {error}") from None
            if data.manifest.fingerprint != store.fingerprint:
                raise CorruptError(f"{store.path}: a worker on {node()} sees other data there than the client")
            feed = _feeds[store] = Feed(data)
        if pins and feed.pinned != pins:
            feed = _feeds[store] = Feed(feed.data, pins)
        return feed


def _runner(feed: Feed) -> Runner:
    own = _own.task = getattr(_own, "task", None) or _Task()
    own.worker = distributed.get_worker()
    own.key = own.worker.get_current_task()
    runner = getattr(_own, "runner", None)
    if runner is None or runner.feed is not feed:
        nothing = LaneRows(RowFiles(""), 0, 0, 0)
        runner = Runner(feed, Lanes((0, 0)), row_state=nothing, stop=own.given_up)  # type: ignore[arg-type]
        _own.runner = runner
    return runner


class _Task:
    """The task of a thread. Its fetch threads use it too; in these, Dask knows no worker."""

    worker: Any
    key: Any

    def given_up(self) -> bool:
        """Whether its result is no longer wanted."""
        task = self.worker.state.tasks.get(self.key)
        return task is None or task.state == "cancelled"
