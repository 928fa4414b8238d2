"""Passes on a Dask cluster, with the same bits as on threads.

A pass goes to a worker as bytes with its first lane, or, when large, from worker to worker as a Dask result; partial
sums come back and merge in lane order. A lane belongs to the worker that keeps its shards in memory, but may run anywhere: a pass
is pure, so the lanes of a dead worker are reassigned (flights.py). Passes with row caches run elsewhere only when that worker is
lost: the caches are there, and a worker without one repeats the passes since it was filled.

The row state is in the client's scratch folder if all workers see it; then losing workers loses none of it. Else it is on the
workers' own disks, each lane at its worker and that worker's neighbour (row_exchange.py); then losing one worker at a time costs
only the lanes in progress there, no pass. When both are lost, only the last checkpoint is left.
"""

from __future__ import annotations

import logging
import pickle
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import distributed

from streamcut.errors import ClusterLostError, LockedError
from streamcut.execution.dask import row_exchange
from streamcut.execution.dask.cluster import LOCAL, Cluster, connect, lost, lost_if_silent
from streamcut.execution.dask.flights import Flights, RowsMovedError
from streamcut.execution.dask.owned_rows import OwnedRows
from streamcut.execution.dask.plan import Placement, shards_of
from streamcut.execution.dask.ranges import Aside, Source, put_back
from streamcut.execution.dask.shared_rows import SharedRows
from streamcut.execution.dask.worker import Job, run_lanes, run_range
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Pass, row_caches
from streamcut.execution.runner import PassReport, Watchable
from streamcut.foundation.files import disk_full, locked
from streamcut.foundation.opened import read_file
from streamcut.io.dataset import Dataset

__all__ = ["LOCAL", "Cluster", "DaskRunner", "connect"]

log = logging.getLogger(__name__)

_FOLDER = "streamcut-rows-"  # prefix of folders in the scratch folder
RANGES_FROM = 64 << 20  # bytes of all partial sums of a pass; above, workers add them up, each a range of features
RANGES_WORKERS = 4  # at least this many workers: fewer relieve the client's line too little
_CHECK = 1.0  # seconds between checks of the list of workers
_ATTEMPTS = 3  # at a pass: the row state may be handed on more than once
_INLINE = 1 << 18  # the most bytes of a pass that are sent to each worker through the scheduler


class DaskRunner(Watchable):
    """A Runner (streamcut.execution.runner) whose passes run on a prepared and planned cluster."""

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
        self._run = f"{cluster.client.id} {uuid.uuid4().hex}"
        where = self._folder, lanes, scratch, self._new_number
        owned = None if cluster.shared else OwnedRows(*where, cluster, self._run, self._placed)
        self.row_state = owned or SharedRows(*where)
        self._owned = owned
        self.stop = stop
        self._number = 0
        self._placement: Placement | None = None
        self._moved = False  # whether lanes moved because workers were lost
        self._past: tuple[int, ...] = ()  # numbers of the passes that the row caches have seen since they were filled

    @property
    def rows(self) -> dict[str, Any]:
        """The row state; see SharedRows.arrays."""
        return self.row_state.arrays

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ClusterLostError, OSError):
            self._cluster.ask(sorted(self._cluster.running()), row_exchange.forget, self._run)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._open.close()

    def run(self, work: Pass) -> tuple[Any, PassReport]:
        """The merged partial of all lanes. The first error of any lane is raised; ClusterLostError when the cluster is lost.

        Raises ValueError for a pass that is not pure: a lane may run twice here.
        """
        if not work.pure:
            raise ValueError(f"{type(work).__name__} is not pure: it runs on threads only, where no lane is done twice")
        started = time.perf_counter()
        cached = bool(row_caches(work))
        if work.needs_data or not cached:
            self._forget()
        for attempt in range(_ATTEMPTS):
            try:
                total, changes, traffic = self._attempt(work, cached)
                break
            except RowsMovedError as error:
                if attempt == _ATTEMPTS - 1:
                    raise lost(self._cluster.address, str(error)) from None
                self._moved = True
            finally:
                self._going = None
        if not cached:
            self._forget()
        for name, lane in changes:
            self.row_state.replaced(name, lane, self._number)
        self.feed.readings.add(traffic.rows)
        return total, PassReport(time.perf_counter() - started, traffic)

    def _attempt(self, work: Pass, cached: bool) -> tuple[Any, list[tuple[str, int]], Traffic]:
        """(sum, changed parts of the row state, traffic) of a pass over all lanes; commits nothing yet."""
        if work.needs_data or self._moved or self._placement is None:
            self._placement = self._cluster.placement(self._placement)
        if self._owned is not None:
            self._owned.place(self._placement)
        self.row_state.commit()
        self._new_number()
        placement, owned, past = self._placement, self._owned is not None, self._past
        aside = RANGES_FROM if len(placement.threads_of) >= RANGES_WORKERS and not self._cluster.local else 0
        kept = placement.pins, placement.capacity, past, aside, owned, placement.neighbours() if owned else {}
        job = Job(self._run, self._number, work, self._cluster.store, self.lanes, self.row_state.files, *kept)
        written = pickle.dumps(job, protocol=5)
        if cached:
            with disk_full(self._file(self._number), len(written)):
                self._file(self._number).write_bytes(written)
            self._past += (self._number,)
        try:
            return self._collect(work, written, placement)
        except RowsMovedError:
            self._past = past
            raise
        except BaseException:
            self._forget()
            raise

    def _placed(self) -> Placement:
        """The placement of lanes, also before the first pass."""
        if self._placement is None:
            self._placement = self._cluster.placement(None)
        return self._placement

    def _new_number(self) -> int:
        """A new number, of a pass or of row-state files written between passes."""
        self._number += 1
        return self._number

    def _file(self, number: int) -> Path:
        return self._folder / f"pass.{number}"

    def _forget(self) -> None:
        """Remove the files of passes that need not be repeated any more."""
        for number in self._past:
            self._file(number).unlink(missing_ok=True)
        self._past = ()

    def _collect(self, work: Pass, written: bytes, placement: Placement) -> tuple[Any, list[tuple[str, int]], Traffic]:
        """(sum, changed parts of the row state, traffic)."""
        cached = bool(row_caches(work))
        flights = Flights(
            self._cluster,
            placement,
            placement.tasks(one_by_one=work.needs_data or cached),
            _Submitter(self, type(work).__name__, written, placement.threads_of),
            shards=lambda lanes: shards_of(lanes, self.lanes, self.feed.data.manifest),
            movable=not cached,
        )
        total: Any = None
        changes: list[tuple[str, int]] = []
        traffic = Traffic()
        self._going = ([traffic], time.perf_counter()) if work.needs_data else None
        early: dict[int, Any] = {}
        holders: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        asides: dict[str, Aside] = {}
        addresses: set[str] = set()
        merged = 0
        while merged < len(self.lanes):
            for result in flights.next(merged, lambda: work.interruptible and self.stop()):
                early[result.lane] = result
            while merged in early:
                result = early.pop(merged)
                total = result.partial if total is None else work.merge(total, result.partial)
                changes += [(name, result.lane) for name in result.changed]
                holders[result.lane] = result.changed, result.holders
                addresses.add(result.address)
                for name, shape in result.aside.items():
                    asides.setdefault(name, Aside(shape)).sources.append(Source(result.lane, result.address))
                traffic += result.traffic
                merged += 1
        if asides:
            put_back(work, total, asides, self._added_up(type(work).__name__, asides, sorted(addresses)))
        if self._owned is not None:
            for lane, (changed, at) in holders.items():
                self._owned.held(lane, changed, at)
        self._moved = flights.lost
        return total, changes, traffic

    def _added_up(self, name: str, asides: dict[str, Aside], addresses: list[str]) -> list[dict[str, Any]]:
        """The ranges of the arrays set aside, each added up by a worker that had lanes. Raises RowsMovedError."""
        client = self._cluster.client
        with lost_if_silent(self._cluster.address):
            futures = [
                client.submit(
                    run_range, self._run, self._number, asides, part, len(addresses),
                    key=f"{name}-sums-{uuid.uuid4().hex}", workers=[address], pure=False,
                )
                for part, address in enumerate(addresses)
            ]  # fmt: skip
        answer = self._cluster.gather(futures)
        try:
            while not wait([answer], timeout=_CHECK).done:
                if not self._cluster.running().issuperset(addresses):
                    raise RowsMovedError("workers with partial sums were lost one after the other")
            with lost_if_silent(self._cluster.address):
                found = answer.result()
        finally:
            answer.cancel()
        if any(block is None for block in found):
            raise RowsMovedError("workers with partial sums were lost one after the other")
        return found


class _Submitter:
    """Sends lanes of a pass to workers, in tasks named after it for the dashboard. A large pass goes from worker to worker."""

    def __init__(self, runner: DaskRunner, name: str, written: bytes, addresses: Iterable[str]) -> None:
        self._runner = runner
        self._name = name
        self._written = written
        self._number = runner._number
        self.large = len(written) > _INLINE
        self.renew(addresses)

    def renew(self, addresses: Iterable[str]) -> None:
        """From now on these workers hold the pass: others are lost, and waiting for them would never end."""
        self._addresses = addresses
        self._body: Any = self._held("weights", self._written) if self.large else self._written

    def __call__(self, address: str, lanes: tuple[int, ...], passes: tuple[int, ...]) -> distributed.Future:
        runner, numbers = self._runner, [each for each in passes if each != self._number]
        before = [self._held("before", read_file(runner._file(each))) for each in numbers]
        call = run_lanes, runner._run, lanes, (*numbers, self._number), *before, self._body
        return runner._cluster.submit(address, self._name, *call)

    def _held(self, what: str, written: bytes) -> distributed.Future:
        return self._runner._cluster.held(f"{self._name}-{what}", written, self._addresses)


def _remove_leftovers(scratch: Path) -> None:
    """Remove what killed clients left: their locks ended with them."""
    for folder in scratch.glob(_FOLDER + "*"):
        with suppress(LockedError, OSError), locked(folder / "lock", str(folder)):
            shutil.rmtree(folder)
