"""Passes on a Dask cluster, with the same bits as on threads: the only module that knows Dask.

A pass goes to the workers as one file in the shared scratch folder, where the row state lies too (shared_rows.py): as fast as
scattering it, and nothing is lost with a worker. Dask moves numbers of lanes one way and partial sums back. A task is one lane,
or, when no data is read, all lanes of a worker. A lane belongs to the worker that keeps its shards in memory, but may run
anywhere: a pass is pure, so what a dead worker leaves undone is done by the others. Passes with row caches run elsewhere only
when it is lost: their caches are there, and who has none repeats the passes since it was filled. Partial sums merge in lane
order, LANES_AHEAD for each thread on their way at most.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import shutil
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

import streamcut
from streamcut.errors import ClusterLostError, LockedError, UsageError
from streamcut.execution.dask import plan as dask_plan
from streamcut.execution.dask import worker as dask_worker
from streamcut.execution.dask.plan import LANES_AHEAD, ClusterNeeds, Placement, WorkerProcess, read_by
from streamcut.execution.dask.shared_rows import SharedRows
from streamcut.execution.dask.worker import Job, LaneResult, Store, WorkerMemory
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Pass, row_caches
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import Interrupted, PassReport, Watchable
from streamcut.execution.scaled import scale_of
from streamcut.files import disk_full, locked
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Manifest
from streamcut.machine import resident_bytes

log = logging.getLogger(__name__)

LOCAL = "local-cluster"
_FOLDER = "streamcut-rows-"  # beginning of the names of folders in the scratch folder
_POLL = 0.25  # seconds between two checks of the clock and at `stop`
_CHECK = 1.0  # seconds between two checks of the list of workers
_USABLE = 0.7  # of a worker's memory limit: above it Dask spills, then pauses, then kills
_UNLIMITED = 0.8  # of what a machine has available, when its workers have no limit
_GONE = (CancelledError, asyncio.CancelledError, OSError)  # Dask's CommClosedError and TimeoutError are OSErrors


def _run_lanes(place: str, lanes: tuple[int, ...]) -> list[LaneResult]:
    return dask_worker.run_lanes(place, lanes, distributed.get_worker().address)


@contextmanager
def lost_if_silent(address: str, reading: Callable[[str], str] = str) -> Iterator[None]:
    """Turn what Dask raises when scheduler or workers are gone into ClusterLostError; `reading` says what a task was at."""
    try:
        yield
    except KilledWorker as error:
        what = f"several workers died one after the other at {reading(str(error.task))}, for lack of memory or of damaged data"
    except _GONE as error:
        if isinstance(error, OSError) and error.errno is not None:  # Dask's own have no number
            raise
        what = f"no connection to the scheduler or a worker ({type(error).__name__}: {error})"
    else:
        return
    raise _lost(address, what)


def _lost(address: str, what: str) -> ClusterLostError:
    return ClusterLostError(f"the Dask cluster at {address} is lost: {what}; the last checkpoint, if any, is good for --resume")


class Cluster:
    """A Dask cluster on which passes run. `local`: started by us, on this machine, within one memory budget.

    deadline  seconds that it may be without any worker
    """

    def __init__(self, client: distributed.Client, *, local: bool, deadline: float) -> None:
        self.client = client
        self.local = local
        self.deadline = deadline
        self.address = client.scheduler.address
        self.workers: dict[str, WorkerProcess] = {}
        self._told: set[tuple[str, int, int]] = set()  # workers with too little memory
        self._share: int | None = None  # of the budget, for each worker of a local cluster

    def prepare(self, data: Dataset, scratch: Path, warm_up: Callable[[Manifest], None]) -> None:
        """Open the store on all workers and load the kernels there.

        Raises UsageError when there is nothing to share, NotFoundError and CorruptError as the workers find the store.
        """
        if data.path is None:
            raise UsageError("rows in memory cannot be trained on Dask; make a store of them with `streamcut convert`")
        path = data.path if "://" in data.path else os.path.abspath(data.path)
        self._store = Store(path, data.manifest.fingerprint, scale_of(data))
        self._scratch, self._warm_up = scratch, warm_up
        since = time.monotonic()
        while not self.workers:
            if running := self._running():
                self._meet(list(running))
            else:
                self.watch(since)
                time.sleep(_POLL)

    def plan(self, needs: ClusterNeeds, *, budget: int) -> MemoryPlan:
        """The memory plan. Raises MemoryBudgetError."""
        workers = list(self.workers.values())
        if self.local:
            workers, plan = dask_plan.shares(needs, workers, budget=budget, base=resident_bytes())
            self.workers = {worker.address: worker for worker in workers}
            self._share = workers[0].usable
        else:
            plan = dask_plan.remote(needs, workers, budget=budget, base=resident_bytes())
        self._needs = replace(needs, row_cache=plan.row_cache)
        return plan

    def placement(self) -> Placement:
        """Lanes, shards and row caches for the workers there are now. Waits for one until the deadline."""
        since = time.monotonic()
        while True:
            running = self._running()
            if new := [address for address in running if address not in self.workers]:
                self._meet(new)
                for address in new:
                    if address in self.workers and not self.local:
                        self._needs.check(self.workers[address])
            if workers := [self.workers[address] for address in running if address in self.workers]:
                break
            self.watch(since)
            time.sleep(_POLL)
        placement = self._needs.placement(workers)
        crowded = {(at, caches, lanes) for at, (caches, lanes) in placement.crowded().items()} if self._needs.row_cache else set()
        for found in crowded - self._told:
            log.warning(
                "the worker at %s has memory for %d of the row caches of its %d lanes; the others are filled again for every "
                "sweep, which takes long: add workers",
                *found,
            )
        self._told |= crowded
        return placement

    def watch(self, since: float) -> float:
        """Now, if there are workers, otherwise `since`, when there were some. Raises ClusterLostError after the deadline."""
        if self._running():
            return time.monotonic()
        if time.monotonic() - since > self.deadline:
            raise _lost(self.address, f"it has been without workers for {self.deadline:g} s")
        return since

    def gather(self, futures: list[distributed.Future]) -> Future:
        """Their results, as a future that one can stop waiting for: Dask itself waits for lost ones as long as it takes."""
        loop = self.client.loop.asyncio_loop  # type: ignore[union-attr]
        return asyncio.run_coroutine_threadsafe(self.client.gather(futures, direct=True, asynchronous=True), loop)

    def waiting(self, futures: list[distributed.Future], addresses: set[str]) -> set[str]:
        """Keys of tasks that no worker has, once one of `addresses` is gone.

        Dask lets a task that is placed run elsewhere, but forgets that when for a moment there was no worker at all.
        """
        if addresses <= self._running().keys():
            return set()
        with lost_if_silent(self.address):
            taken = {key for keys in self.client.processing().values() for key in keys}
        return {str(future.key) for future in futures if not future.done() and future.key not in taken}

    def peak(self) -> int:
        """Sum of the peaks of resident memory of all workers."""
        with suppress(ClusterLostError), lost_if_silent(self.address):  # the work is done: no reason to fail any more
            return sum(self.client.run(resident_bytes, "VmHWM", on_error="ignore").values())
        return 0

    def _running(self) -> dict[str, dict]:
        workers = None
        if self.client.status == "running":  # while it reconnects every call blocks, and all that was submitted is cancelled
            with lost_if_silent(self.address):
                workers = self.client.scheduler_info(n_workers=-1).get("workers")
        if workers is None:
            raise _lost(self.address, "no connection to the scheduler")
        return {address: worker for address, worker in workers.items() if worker.get("status", "running") == "running"}

    def _meet(self, addresses: list[str]) -> None:
        """Take in new workers. Those that die meanwhile are left out."""
        with tempfile.NamedTemporaryFile(dir=self._scratch, prefix="streamcut-") as probe, lost_if_silent(self.address):
            call = (dask_worker.prepare, self._store, probe.name, streamcut.__version__, self._warm_up)
            if self.local:
                self.client.run(dask_worker.ignore_interrupts, workers=addresses, on_error="ignore")
            told = self.client.run(*call, workers=addresses, on_error="return")
        for error in told.values():
            if isinstance(error, ModuleNotFoundError):
                raise UsageError(f"a worker of the cluster at {self.address} cannot run streamcut: {error}; install it there")
            if isinstance(error, Exception) and not isinstance(error, _GONE):
                raise error
        running = self._running()
        met: dict[str, WorkerMemory] = {
            at: memory for at, memory in told.items() if at in running and isinstance(memory, WorkerMemory)
        }
        hosts = [memory.host for memory in met.values()]
        for address, memory in met.items():
            limit = running[address]["memory_limit"]
            unlimited = memory.resident + int(memory.available * _UNLIMITED) // hosts.count(memory.host)
            usable = self._share or (int(limit * _USABLE) if limit else unlimited)
            self.workers[address] = WorkerProcess(address, running[address]["nthreads"], memory.resident, usable)


@contextmanager
def connect(scheduler: str | distributed.Client, *, workers: int, deadline: float) -> Iterator[Cluster]:
    """The cluster `scheduler`: an address, a client (which stays open), or "local-cluster", of `workers` processes.

    Raises ClusterLostError when nobody answers.
    """
    if isinstance(scheduler, distributed.Client):
        yield Cluster(scheduler, local=False, deadline=deadline)
        return
    with ExitStack() as stack:
        try:
            if scheduler == LOCAL:
                server = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        memory_limit=0,  # Dask would pause and kill by its own measure; our plan keeps the budget
                        dashboard_address=":0",
                        silence_logs=logging.ERROR,
                    )
                )
            client = distributed.Client(server if scheduler == LOCAL else scheduler, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterLostError(
                f"--scheduler {scheduler}: no Dask scheduler there ({error}); start one, then try again"
            ) from None
        stack.callback(client.close, timeout=5)
        yield Cluster(client, local=scheduler == LOCAL, deadline=deadline)


class DaskRunner(Watchable):
    """A Runner (streamcut.execution.runner) whose passes run on a cluster that is prepared and planned."""

    def __init__(
        self, cluster: Cluster, data: Dataset, lanes: Lanes, *, scratch: Path, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.feed = Feed(data)
        self.lanes = lanes
        self._cluster = cluster
        _remove_leftovers(scratch)
        self._folder = Path(tempfile.mkdtemp(dir=scratch, prefix=_FOLDER))
        self._open = ExitStack()
        self._open.enter_context(locked(self._folder / "lock", str(self._folder)))
        self.row_state = SharedRows(self._folder, lanes, scratch)
        self.stop = stop
        self._number = 0
        self._placement: Placement | None = None
        self._past: tuple[str, ...] = ()  # files of the passes that the row caches have seen since they were filled

    @property
    def rows(self) -> dict[str, Any]:
        """The row state; see SharedRows.arrays."""
        return self.row_state.arrays

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._open.close()

    def run(self, work: Pass) -> tuple[Any, PassReport]:
        """The merged partial of all lanes. The first error of any lane is raised; ClusterLostError when the cluster is gone.

        Raises ValueError for a pass that is not pure: a lane may be done twice here.
        """
        if not work.pure:
            raise ValueError(f"{type(work).__name__} is not pure: it runs on threads only, where no lane is done twice")
        started = time.perf_counter()
        self._number += 1
        self.row_state.commit(self._number)
        cached = bool(row_caches(work))
        if work.needs_data or not cached:
            self._forget()
        if work.needs_data or self._placement is None:
            self._placement = self._cluster.placement()
        self._number += 1
        place = self._folder / f"pass.{self._number}"
        placed = self._placement.pins, self._placement.capacity
        job = Job(self._number, work, self._cluster._store, self.lanes, self.row_state.files, *placed, self._past)
        temporary = place.with_name(f".{place.name}")
        written = pickle.dumps(job, protocol=5)
        with disk_full(place, len(written)):
            temporary.write_bytes(written)
        os.replace(temporary, place)
        self._past += (str(place),)
        try:
            total, changes, traffic = self._collect(work, str(place), self._placement)
        except BaseException:
            self._forget()
            raise
        finally:
            self._going = None
        if not cached:
            self._forget()
        for name, lane in changes:
            self.row_state.replaced(name, lane, self._number)
        return total, PassReport(time.perf_counter() - started, traffic)

    def _forget(self) -> None:
        """Remove the files of passes that nobody has to repeat any more; whoever still works at one may stop."""
        for place in self._past:
            Path(place).unlink(missing_ok=True)
        self._past = ()

    def _collect(self, work: Pass, place: str, placement: Placement) -> tuple[Any, list[tuple[str, int]], Traffic]:
        """(sum, what changed of the row state, traffic)."""
        cached = bool(row_caches(work))
        tasks = placement.tasks(one_by_one=work.needs_data or cached)
        ahead = LANES_AHEAD * placement.threads
        flying: deque[_Task] = deque()
        early: dict[int, LaneResult] = {}
        total: Any = None
        changes: list[tuple[str, int]] = []
        traffic = Traffic()
        self._going = ([traffic], time.perf_counter()) if work.needs_data else None
        merged = 0
        while merged < len(self.lanes):
            while tasks and len(flying) < ahead:
                lanes = tasks.popleft()
                where = {"workers": [placement.worker_of[lanes[0]]], "allow_other_workers": not cached}
                flying.append(self._submit(place, lanes, **where))
            results = self._fetch(flying, place, set(placement.worker_of.values()), work.interruptible)
            for result in (lane for task in results for lane in task):
                early[result.lane] = result
            while merged in early:
                result = early.pop(merged)
                total = result.partial if total is None else work.merge(total, result.partial)
                changes += [(name, result.lane) for name in result.changed]
                traffic += result.traffic
                merged += 1
        return total, changes, traffic

    def _submit(self, place: str, lanes: tuple[int, ...], **where: Any) -> _Task:
        with lost_if_silent(self._cluster.address):
            key = f"streamcut-{uuid.uuid4().hex}"
            return _Task(self._cluster.client.submit(_run_lanes, place, lanes, key=key, **where), lanes)

    def _fetch(self, flying: deque[_Task], place: str, addresses: set[str], may_stop: bool) -> list[list[LaneResult]]:
        """Wait for the first task; take it and those that are done behind it out of `flying`."""
        seen = looked = time.monotonic()
        wanted: Future | None = None
        try:
            while True:
                if wanted is None:
                    count = 1
                    while count < len(flying) and flying[count].future.done():
                        count += 1
                    wanted = self._cluster.gather([flying[i].future for i in range(count)])
                if may_stop and self.stop():
                    raise Interrupted
                if wait([wanted], timeout=_POLL).done:
                    with lost_if_silent(self._cluster.address, lambda key: read_by(flying, self.lanes, self.feed.data, key)):
                        results = wanted.result()
                    for _ in range(count):
                        flying.popleft()
                    return results
                if time.monotonic() - looked > _CHECK:
                    seen, looked = self._cluster.watch(seen), time.monotonic()
                    lost = self._cluster.waiting([task.future for task in flying], addresses)
                    for number, task in enumerate(flying):
                        if task.future.key in lost:
                            flying[number] = self._submit(place, task.lanes)
                    if lost:
                        self._placement = None  # the next pass is placed anew
                        wanted.cancel()
                        wanted = None
        finally:
            if wanted is not None:
                wanted.cancel()


def _remove_leftovers(scratch: Path) -> None:
    """Remove what clients left that were killed: their locks died with them."""
    for folder in scratch.glob(_FOLDER + "*"):
        with suppress(LockedError, OSError), locked(folder / "lock", str(folder)):
            shutil.rmtree(folder)


@dataclass(frozen=True, slots=True)
class _Task:
    future: distributed.Future
    lanes: tuple[int, ...]
