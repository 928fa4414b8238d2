"""What runs in the processes of a Dask cluster: lanes of a pass, on the runner that threads use too.

A pass comes as a file in the shared folder, read once by each process. While the file is there the pass is wanted.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamcut
from streamcut.errors import CorruptError, NotFoundError, UsageError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.runner import Interrupted, Pass, Runner
from streamcut.execution.shared_rows import LaneRows, RowFiles
from streamcut.io.manifest import Manifest
from streamcut.io.opening import open_dataset
from streamcut.machine import machine_memory, resident_bytes


@dataclass(frozen=True, slots=True)
class Store:
    """A data set that every process opens for itself: `path`, and the fingerprint that it must have."""

    path: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Job:
    """A pass and what it needs to know. `pins` are the shards that each worker (by address) keeps decoded."""

    number: int
    work: Pass
    store: Store
    lanes: Lanes
    rows: RowFiles
    pins: dict[str, frozenset[int]]


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
    warm_up(_feed(store, frozenset()).data.manifest)
    return WorkerMemory(resident_bytes(), machine_memory()[1], os.uname().nodename)


def run_lanes(place: str, lanes: tuple[int, ...], address: str) -> list[LaneResult]:
    """Run the pass in the file `place` over `lanes`, on the worker at `address`. Raises Interrupted when it is not wanted."""
    job = _job(place)
    runner = _runner(_feed(job.store, job.pins.get(address, frozenset())), place)
    return [_lane(runner, job, lane) for lane in lanes]


def _lane(runner: Runner, job: Job, lane: int) -> LaneResult:
    start, stop = job.lanes.rows(lane)
    rows = LaneRows(job.rows, lane, start, stop)
    runner.lanes, runner.row_state, runner.rows = Lanes((start, stop)), rows, rows.arrays  # type: ignore[assignment]
    partial, report = runner.run(job.work)
    return LaneResult(lane, partial, report.traffic, rows.keep(job.number))


_lock = threading.Lock()
_last_job: tuple[str, Job] | None = None
_feeds: dict[Store, Feed] = {}
_own = threading.local()  # each thread's `runner`, with its buffers, and the `place` of its pass


def _job(place: str) -> Job:
    global _last_job
    with _lock:
        if _last_job is None or _last_job[0] != place:
            try:
                with open(place, "rb") as file:
                    _last_job = (place, pickle.load(file))
            except FileNotFoundError:
                raise Interrupted from None
        return _last_job[1]


def _feed(store: Store, pins: frozenset[int]) -> Feed:
    """The open store. Pinned shards are read again when the worker is told to pin others."""
    with _lock:
        feed = _feeds.get(store)
        if feed is None:
            _feeds.clear()
            try:
                data = open_dataset(store.path)
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
