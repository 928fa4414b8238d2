"""A Dask cluster as its client sees it: its workers, their memory, which of them are silent, and when the cluster is lost.

A worker counts while the scheduler lists it as running and hears from it: one that is stopped or unreachable for the scheduler
is left out after SILENCE, longer on busy machines, which are slow to send heartbeats, and taken in again when it is heard.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import dask
import distributed
from distributed.scheduler import KilledWorker

import streamcut
from streamcut.errors import ClusterLostError, StreamcutError, UsageError
from streamcut.execution.dask import plan as dask_plan
from streamcut.execution.dask import worker as dask_worker
from streamcut.execution.dask.logs import MOST, of_our_own, says_something, without_tracebacks
from streamcut.execution.dask.plan import ClusterNeeds, Placement, WorkerProcess
from streamcut.execution.dask.worker import Greeting, Store, WorkerMemory
from streamcut.execution.plan import MemoryPlan
from streamcut.foundation.machine import available_cpus
from streamcut.foundation.systems import peak_bytes, resident_bytes
from streamcut.io.dataset import Dataset

log = logging.getLogger(__name__)

LOCAL = "local-cluster"
SILENCE = 120.0  # seconds after which a silent worker counts as gone: busy machines are slow
_REACHED = 5.0  # seconds within which a worker that is reachable from here answers
POLL = 0.25  # seconds between checks of the clock and of `stop`
_USABLE = 0.7  # of a worker's memory limit: above it Dask spills, then pauses, then kills
_UNLIMITED = 0.8  # of a machine's available memory, when its workers have no limit
_GONE = (CancelledError, asyncio.CancelledError, OSError)  # Dask's CommClosedError and TimeoutError are OSErrors


@contextmanager
def lost_if_silent(address: str) -> Iterator[None]:
    """Turn what Dask raises when scheduler or workers are gone into ClusterLostError."""
    try:
        yield
    except KilledWorker as error:
        raise lost(address, f"several workers died one after the other ({error})") from None
    except _GONE as error:
        if isinstance(error, OSError) and error.errno is not None:  # Dask's own have no number
            raise
        raise lost(address, f"no connection to the scheduler or a worker ({type(error).__name__}: {error})") from None


def lost(address: str, what: str) -> ClusterLostError:
    """The error for a cluster that cannot be used any longer."""
    return ClusterLostError(f"the Dask cluster at {address} is lost: {what}; --resume continues from the last checkpoint, if any")


def _without_warnings_of_size() -> dask.config.set:
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"})


def _kept(written: bytes) -> bytes:
    return written


def _clients(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.clients)


class Cluster:
    """A Dask cluster on which passes run. `local`: started by this process, on this machine, within one memory budget.

    deadline  seconds that it may have no worker
    silence   seconds after which a silent worker counts as gone, when the cluster is responsive; patience: the present value
    shared    all workers see the client's scratch folder, so the row state is there; else on their own disks
    """

    def __init__(self, client: distributed.Client, *, local: bool, deadline: float, silence: float = SILENCE) -> None:
        logging.getLogger("asyncio").addFilter(says_something)
        self.client = client
        self.local = local
        self.deadline, self.silence, self.patience = deadline, silence, silence
        self.address = client.scheduler.address
        self.workers: dict[str, WorkerProcess] = {}
        self.shared = True
        self.store: Store
        self._needs: ClusterNeeds
        self._directories: dict[str, str] = {}  # of `workers`: a different one at the same address is another process
        self._heard: dict[str, tuple[float, float]] = {}  # {address: (the scheduler's time stamp, when it was received here)}
        self._told: set[tuple[str, int, int]] = set()  # workers already reported for too little memory
        self._share: int | None = None  # of the budget, for each worker of a local cluster
        self._direct: bool | None = None  # whether results come straight from workers; None: Dask decides

    def prepare(self, data: Dataset, scratch: Path) -> None:
        """Open the store on all workers and load the kernels there.

        Raises UsageError for data in memory, NotFoundError and CorruptError if workers can't open the store.
        """
        if data.path is None:
            raise UsageError("rows in memory cannot be trained on Dask; make a store of them with `streamcut convert`")
        self.store = Store.of(data)
        self._scratch = scratch
        self._direct = self._reaches(self._waited_for(first=True)[0].address)

    def plan(self, needs: ClusterNeeds, *, budget: int) -> MemoryPlan:
        """The memory plan. Raises MemoryBudgetError."""
        workers, given = list(self.workers.values()), {"budget": budget, "base": resident_bytes()}
        if needs.needs.climbing:
            self._needs, workers, plan = dask_plan.climbing(needs, workers, local=self.local, **given)
        else:
            if self.local:
                workers, plan = dask_plan.shares(needs, workers, **given)
            else:
                plan = dask_plan.remote(needs, workers, **given)
            self._needs = replace(needs, row_cache=plan.row_cache)
        self.workers = {worker.address: worker for worker in workers}
        if self.local:
            self._share = workers[0].usable
        return plan

    def members(self) -> list[WorkerProcess]:
        """The present workers, new ones prepared and checked; may be empty."""
        return self._members(first=False)

    def placement(self, before: Placement | None) -> Placement:
        """Lanes, shards and row caches for the present workers; lanes stay where they were `before` as far as is fair.

        Waits for a worker until the deadline.
        """
        placement = self._needs.placement(self._waited_for(first=False), before)
        crowded = {(at, caches, lanes) for at, (caches, lanes) in placement.crowded().items()} if self._needs.row_cache else set()
        for found in crowded - self._told:
            log.warning(
                "the worker at %s has memory for %d of the row caches of its %d lanes; the others go to its disk and back in "
                "every sweep, which takes time: add workers",
                *found,
            )
        self._told |= crowded
        return placement

    def watch(self, since: float) -> float:
        """The time now if there are workers, else `since`, when there last were. Raises ClusterLostError after the deadline."""
        if self.running():
            return time.monotonic()
        if time.monotonic() - since > self.deadline:
            raise lost(self.address, f"it has been without workers for {self.deadline:g} s")
        return since

    def running(self) -> set[str]:
        """Addresses of the workers that run, are not silent, and are still the processes that were met there."""
        return {address for address, worker in self._listed().items() if not self._replaced(address, worker)}

    def fates(self, addresses: list[str]) -> str:
        """The `addresses` of lost workers; those that the scheduler still lists are marked as silent."""
        with lost_if_silent(self.address):
            known = self.client.scheduler_info(n_workers=-1).get("workers", {})
        return ", ".join(f"{at}, silent for {self.patience:.3g} s" if at in known else at for at in addresses)

    def gather(self, futures: list[distributed.Future]) -> Future:
        """Their results, as a future whose wait can be interrupted: Dask itself waits for lost ones indefinitely."""
        return self._in_background(self.client.gather(futures, direct=self._direct, asynchronous=True))

    def held(self, name: str, written: bytes, addresses: Iterable[str]) -> distributed.Future:
        """`written` as a Dask result at one of these workers, recreated when that one is lost."""
        with lost_if_silent(self.address), _without_warnings_of_size():
            key = f"{name}-{uuid.uuid4().hex}"
            return self.client.submit(_kept, written, key=key, workers=sorted(addresses), pure=False)

    def submit(self, address: str, name: str, function: Callable[..., Any], *arguments: Any) -> distributed.Future:
        """What `function` returns at this worker."""
        with _without_warnings_of_size():
            key = f"{name}-{uuid.uuid4().hex}"
            return self.client.submit(function, *arguments, key=key, workers=[address], pure=False)

    def ask(self, addresses: list[str], function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """What `function` returns on each worker that answers before it counts as gone, even if its threads are busy."""
        calls = {at: self._in_background(self._call(at, function, *arguments)) for at in addresses}
        while late := [at for at, call in calls.items() if not call.done()]:
            if wait([calls[at] for at in late], timeout=POLL).not_done:  # Dask itself waits for them indefinitely
                for address in set(late) - self.running():
                    calls.pop(address).cancel()
        with lost_if_silent(self.address):
            answers = {at: call.result() for at, call in calls.items()}
        return {at: answer for at, answer in answers.items() if not isinstance(answer, BaseException)}

    def peak(self) -> int:
        """Sum of the peaks of resident memory of all workers."""
        with suppress(ClusterLostError):  # the work is done: no reason to fail now
            return sum(self.ask(list(self.running()), peak_bytes).values())
        return 0

    async def _call(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        told = await self.client.run(function, *arguments, workers=[address], on_error="return", asynchronous=True)
        return told[address]

    def _in_background(self, call: Coroutine[Any, Any, Any]) -> Future:
        loop = self.client.loop.asyncio_loop  # type: ignore[union-attr]
        return asyncio.run_coroutine_threadsafe(call, loop)

    def _reaches(self, address: str) -> bool:
        """Whether this process can connect to workers; where it cannot, results come through the scheduler."""

        async def call() -> None:
            await asyncio.wait_for(self.client.rpc(address).identity(), _REACHED)

        try:
            self.client.sync(call)
        except (OSError, TimeoutError):
            log.info("workers cannot be reached from here: results come through the scheduler")
            return False
        return True

    def _waited_for(self, *, first: bool) -> list[WorkerProcess]:
        since = time.monotonic()
        while not (workers := self._members(first=first)):
            self.watch(since)
            time.sleep(POLL)
        return workers

    def _members(self, *, first: bool) -> list[WorkerProcess]:
        listed = self._listed()
        if new := [at for at, worker in listed.items() if at not in self.workers or self._replaced(at, worker)]:
            for address in self._meet(new):
                if not self.local and not first:
                    self._needs.check(self.workers[address])
        return [self.workers[address] for address in listed if address in self.workers]

    def _replaced(self, address: str, worker: dict) -> bool:
        return self._directories.get(address, worker["local_directory"]) != worker["local_directory"]

    def _listed(self) -> dict[str, dict]:
        workers = None
        if self.client.status == "running":  # during a reconnect every call blocks, and all submitted tasks are cancelled
            with lost_if_silent(self.address):
                workers = self.client.scheduler_info(n_workers=-1).get("workers")
        if workers is None:
            raise lost(self.address, "no connection to the scheduler")
        now, listed = time.monotonic(), {}
        self.patience = patience(self.silence, workers.values(), local=self.local)
        for address, worker in workers.items():
            if self._heard.get(address, (None,))[0] != worker["last_seen"]:
                self._heard[address] = worker["last_seen"], now
            if worker.get("status", "running") == "running" and now - self._heard[address][1] <= self.patience:
                listed[address] = worker
        return listed

    def _meet(self, addresses: list[str]) -> list[str]:
        """Take in new workers; returns those still alive."""
        with tempfile.NamedTemporaryFile(dir=self._scratch, prefix="streamcut-") as probe, lost_if_silent(self.address):
            clients = tuple(self.client.run_on_scheduler(_clients))
            call = (dask_worker.prepare, Greeting(self.store, probe.name, streamcut.__version__, clients))
            if self.local:
                self.client.run(dask_worker.ignore_interrupts, workers=addresses, on_error="ignore")
            told = self.client.run(*call, workers=addresses, on_error="return")
        for error in told.values():
            if isinstance(error, ModuleNotFoundError):
                raise UsageError(f"a worker of the cluster at {self.address} cannot run streamcut: {error}; install it there")
            if isinstance(error, Exception) and not isinstance(error, _GONE):
                raise error
        listed = self._listed()
        met: dict[str, WorkerMemory] = {
            at: memory for at, memory in told.items() if at in listed and isinstance(memory, WorkerMemory)
        }
        self._agree(met)
        hosts = [memory.host for memory in met.values()]
        for address, memory in met.items():
            limit = listed[address]["memory_limit"]
            unlimited = memory.resident + int(memory.available * _UNLIMITED) // hosts.count(memory.host)
            usable = self._share or (int(limit * _USABLE) if limit else unlimited)
            self._directories[address] = listed[address]["local_directory"]
            self.workers[address] = WorkerProcess(address, listed[address]["nthreads"], memory.resident, usable)
        return list(met)

    def _agree(self, met: dict[str, WorkerMemory]) -> None:
        """Determine with the first workers whether all see the client's scratch folder; this does not change later."""
        blind = [memory.host for memory in met.values() if not memory.sees_scratch]
        if not self.workers:
            self.shared = not blind
            if blind:
                log.info("the row state is on the workers' own disks, each lane on two workers if there are two")
        elif self.shared and blind:
            raise UsageError(
                f"--scratch: a worker on {blind[0]} does not see {self._scratch}, where the other workers keep row state; "
                "give a folder that all workers see, or one that none sees"
            )


def _expect_certificates(address: str) -> None:
    """Raise UsageError for an encrypted address without certificates in Dask's configuration; Dask would raise TypeError."""
    if address.startswith("tls://") and distributed.Security().get_connection_args("client").get("ssl_context") is None:
        raise UsageError(
            f"--scheduler: {address}: TLS needs certificates: set distributed.comm.tls.ca-file, client.cert and client.key in "
            "Dask's configuration (or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …)"
        )


@contextmanager
def connect(scheduler: str | distributed.Client, *, workers: int, deadline: float, silence: float = SILENCE) -> Iterator[Cluster]:
    """The cluster `scheduler`: an address, the path of a scheduler file, a client (which stays open), or "local-cluster".

    A local cluster has `workers` processes. TLS is Dask's: a client brings its own; a tls:// address uses Dask's configuration
    (distributed.comm.tls). Raises ClusterLostError without an answer, UsageError for a script that trains again in the
    processes of a local cluster.
    """
    if scheduler == LOCAL:
        refuse_to_train_again()
    if isinstance(scheduler, distributed.Client):
        yield Cluster(scheduler, local=False, deadline=deadline, silence=silence)
        return
    _expect_certificates(scheduler)
    with ExitStack() as stack:
        stack.enter_context(without_tracebacks())
        try:
            if scheduler == LOCAL:
                stack.enter_context(dask.config.set(of_our_own(silence)))
                server = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        memory_limit=0,  # Dask would pause and kill by its own limits; our plan keeps the budget
                        dashboard_address="127.0.0.1:0",  # Dask's default is visible to the network
                        silence_logs=logging.CRITICAL,  # we report errors ourselves, in a sentence
                    )
                )
                client = distributed.Client(server, timeout=10, set_as_default=False)
            elif "://" in scheduler:
                client = distributed.Client(scheduler, timeout=10, set_as_default=False)
            else:
                if not Path(scheduler).exists():  # Dask would wait for it
                    raise OSError("no such file")
                client = distributed.Client(scheduler_file=scheduler, timeout=10, set_as_default=False)
        except RuntimeError as error:
            if StreamcutError.on_command_line:  # no script of the user's is run again
                raise ClusterLostError(
                    f"--scheduler: {scheduler}: its processes did not start ({error}); something ended one, or memory was short: "
                    "try again, with fewer --workers"
                ) from None
            raise UsageError(f"--scheduler: {scheduler}: its processes did not start ({error}). {UNGUARDED}") from None
        except (OSError, ValueError, KeyError) as error:
            raise ClusterLostError(
                f"--scheduler: {scheduler}: no Dask scheduler there ({error}); start one, then try again"
            ) from None
        stack.callback(client.close, timeout=5)
        yield Cluster(client, local=scheduler == LOCAL, deadline=deadline, silence=silence)


UNGUARDED = (
    "local-cluster starts processes that run a Python script again up to where it trains: put the script's code below "
    'if __name__ == "__main__":, or give the address of a running cluster'
)


def refuse_to_train_again() -> None:
    """End a process that would start a cluster while still starting up itself: it has run its parent's script.

    By SystemExit: any other exception during start-up prints a traceback.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)


_TICK = 0.04  # seconds between turns of the event loop of a responsive worker; Dask wants 0.02


def patience(silence: float, workers: Iterable[Mapping[str, Any]], *, local: bool) -> float:
    """Seconds: `silence`, and up to MOST times that, in proportion to the median delay of the event loops of the `workers` (the
    scheduler's record of each) or, for workers on this machine, to its load per processor."""
    turns = [float(worker.get("metrics", {}).get("event_loop_interval") or 0.0) for worker in workers]
    late = median(turns) / _TICK if turns else 1.0
    return silence * min(max(1.0, late, _load() if local else 0.0), MOST)


def _load() -> float:
    """Runnable processes per processor."""
    try:
        return os.getloadavg()[0] / available_cpus()
    except (AttributeError, OSError):  # not available on this system
        return 1.0
