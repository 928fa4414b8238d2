"""Passes on a Dask cluster: workers read, decode and compute; the solver and the row state stay in this process.

A task is a lane, or a shard whose rows are read or scored. It is a pure function of the store, the pass and the row state that is
sent with it, so Dask may run it anywhere, and again when its worker dies. Partial sums merge in lane order, and all steps are
taken here: the bits are those of threads. Workers keep the shards that they have decoded while memory lasts, first come.

What is sent is pickled here, not by Dask, whose arrays may be read-only: every kernel would be compiled again for them.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

import streamcut
from streamcut.errors import ClusterLostError, CorruptError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.execution.feed import Feed, Traffic, with_entries_of
from streamcut.execution.passes import Lanes, Pass, Scoring
from streamcut.execution.plan import BASE, Needs
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Interrupted, PassReport, Runner
from streamcut.execution.views import OccurringDataset, ScaledDataset, occurring, scaled
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.systems import machine_memory, node, peak_bytes, resident_bytes
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import Dataset, View, first_rows, shard_bytes
from streamcut.io.joined import JoinedStores, opened
from streamcut.io.manifest import Manifest
from streamcut.protocols import Sums

DEADLINE = 120.0  # seconds that a cluster may have no workers
_AHEAD = 2  # tasks per thread of the cluster
_POLL = 0.25  # seconds between looks at the workers and at `stop`
_KEEP, _USABLE = 0.5, 0.7  # of a worker's memory limit: decoded shards are kept below it; a training may take
_GONE = (CancelledError, asyncio.CancelledError, OSError)  # Dask's CommClosedError and TimeoutError are OSErrors


@dataclass(frozen=True, slots=True)
class SharedStore:
    """A data set that every process opens for itself: its `fingerprint` there, its views in training, and streamcut's `version`.

    room  bytes of a worker process below which it keeps decoded shards; 0: half of what Dask allows it
    """

    paths: tuple[str, ...]
    fingerprint: str
    scale: str
    occurring: bool
    room: int
    version: str = streamcut.__version__


# --- in the workers -------------------------------------------------------------------------------------------------------------


class _KeepingFeed(Feed):
    """The rows of a data set in a worker process: decoded shards are kept while memory lasts, first come."""

    room: float

    def buffers(self) -> None:
        return None

    def _shard(self, shard: int, buffers: object | None, traffic: Traffic) -> tuple[Chunk, bool]:
        if shard not in self.pinned and resident_bytes() < self.room:
            self._locks.setdefault(shard, threading.Lock())
            self.pinned |= {shard}
        return super()._shard(shard, buffers, traffic)


@lru_cache(maxsize=1)
def _opened(source: SharedStore) -> _KeepingFeed:
    if streamcut.__version__ != source.version:
        problem = f"a worker runs streamcut {streamcut.__version__}, this process {source.version}"
        raise UsageError(f"{problem}; install the same version everywhere")
    try:
        data = scaled(opened(source.paths), source.scale)
    except NotFoundError as error:
        raise NotFoundError(f"a worker on {node()} does not find the store: {error}") from None
    data = occurring(data) if source.occurring else data
    if data.manifest.fingerprint != source.fingerprint:
        raise CorruptError(f"{' '.join(source.paths)}: a worker on {node()} sees other data there than the client")
    feed = _KeepingFeed(data)
    feed.room = source.room or _KEEP * (distributed.get_worker().memory_manager.memory_limit or machine_memory()[0])
    return feed


@lru_cache(maxsize=1)
def _loaded(work: bytes) -> Any:
    return pickle.loads(work)


def run_lane(source: SharedStore, work: bytes, sent: bytes) -> bytes:
    """Of the lane `sent`, (start, stop, row state): the partial sum, and the row state that changed."""
    start, stop, before = pickle.loads(sent)
    state = RowState(0)
    state.arrays.update({name: array.copy() for name, array in before.items()})
    with Runner(_opened(source), Lanes((start, stop)), row_state=state) as runner:
        partial, report = runner.run(_loaded(work))
    changed = {name: array for name, array in state.arrays.items() if array.tobytes() != before[name].tobytes()}
    return _answer(report.traffic, partial, changed)


def read_shard(source: SharedStore, work: bytes | None, sent: bytes) -> bytes:
    """Of the shard `sent`, (number, row state): new row state, and the rows.

    The work scores the rows, and keeps the entries that are needed after that; None: they are read alone.
    """
    shard, rows = pickle.loads(sent)
    chunk = _opened(source).shard(shard, None, traffic := Traffic())
    if work is None:
        return _answer(traffic, {}, chunk)
    scoring = _loaded(work)
    kept = scoring.score(rows, chunk)
    return _answer(traffic, {name: rows[name] for name in scoring.fills}, with_entries_of(kept, chunk))


def _answer(traffic: Traffic, *result: object) -> bytes:
    return pickle.dumps((result, traffic, distributed.get_worker().address, peak_bytes()), protocol=5)


# --- in the client --------------------------------------------------------------------------------------------------------------


def worker_bytes(needs: Needs, manifest: Manifest, lanes: Lanes, threads: int = 1) -> int:
    """What a worker process takes at least: weights and sums, the row state of tasks, and shards, read, decoded and sent."""
    rows = max(shard.rows for shard in manifest.shards)
    if len(lanes) > 1:
        rows = max(rows, *(stop - start for start, stop in pairwise(lanes.bounds)))
    largest = max(shard_bytes(manifest, shard) for shard in manifest.shards)
    per_thread = 8 * needs.dimension * (1 + 2 * needs.vectors) + 4 * needs.row_bytes * rows + 4 * largest
    return BASE + 8 * needs.dimension * 3 + threads * (per_thread + sum(size for _, size in needs.per_worker))


class Cluster:
    """A Dask cluster. `local`: its workers are on this machine, and share the memory of the training."""

    def __init__(self, client: distributed.Client, *, local: bool) -> None:
        self.client, self.local = client, local
        self.address = client.scheduler.address
        self.peaks: dict[str, int] = {}  # bytes, of the workers by address
        self.traffic = Traffic()  # of the tasks of the pass

    def prepare(self, data: Dataset, needs: Needs, lanes: Lanes, *, room: int = 0) -> None:
        """Tell what tasks work on; `room` as in SharedStore.

        Raises UsageError for rows in memory, MemoryBudgetError where a worker is too small, ClusterLostError.
        """
        if data.path is None:
            raise UsageError("rows in memory cannot be trained on Dask; make a store of them with `streamcut convert`")
        below = data.inner if (fewer := isinstance(data, OccurringDataset)) else data
        scale, below = (below.scale, below.inner) if isinstance(below, ScaledDataset) else ("none", below)
        names = below.paths if isinstance(below, JoinedStores) else [data.path]
        paths = tuple(name if "://" in name else os.path.abspath(name) for name in names)
        self._source = SharedStore(paths, data.manifest.fingerprint, scale, fewer, room)
        for address, worker in self._workers().items():
            usable, least = int(_USABLE * worker["memory_limit"]), worker_bytes(needs, data.manifest, lanes, worker["nthreads"])
            if 0 < usable < least:
                raise MemoryBudgetError(
                    f"the worker at {address} may use {format_bytes(usable)}, but this run needs {format_bytes(least)} there. "
                    f"Give it more memory ({_USABLE:.0%} of a worker's limit may be used), fewer threads, or smaller shards"
                )

    def begin(self, work: Pass | Scoring | None) -> distributed.Future | None:
        """`work` as the result of a task, which workers pass on, and Dask makes anew where all copies are lost."""
        workers, self.traffic = self._workers(), Traffic()
        self._present, self.ahead = sorted(workers), _AHEAD * sum(worker["nthreads"] for worker in workers.values()) or 1
        return None if work is None else self.client.submit(bytes, pickle.dumps(work, protocol=5), pure=False)

    def submit(
        self, name: str, place: int, task: Callable[..., bytes], work: distributed.Future | None, *sent: object
    ) -> distributed.Future:
        """A task of the pass `name`. Those of one `place` prefer one worker, which may have decoded their shards."""
        message = pickle.dumps(sent, protocol=5)
        where = {"workers": [self._present[place % len(self._present)]], "allow_other_workers": True} if self._present else {}
        return self.client.submit(task, self._source, work, message, key=f"{name}-{place}-{uuid.uuid4().hex}", **where)

    def result(self, future: distributed.Future, what: str, given_up: Callable[[], bool]) -> Any:
        """What a task returned. Raises Interrupted when `given_up`, ClusterLostError when workers died of it or none are left."""
        answer, present, since = self._gathered(future), set(self._present), time.monotonic()
        try:
            while not given_up():
                if wait([answer], timeout=_POLL).done:
                    break
                now = self._workers().keys()
                if now:
                    since = time.monotonic()
                elif time.monotonic() - since > DEADLINE:
                    raise self._lost(f"it has been without workers for {DEADLINE:g} s")
                if present - now:  # Dask waits for ever for a result that a lost worker was about to send
                    answer.cancel()
                    answer = self._gathered(future)
                present = set(now)
            else:
                raise Interrupted
            result, traffic, address, peak = pickle.loads(answer.result())
        except KilledWorker as error:
            raise self._lost(f"{error.allowed_failures + 1} workers died one after the other while processing {what}") from None
        except ModuleNotFoundError as error:
            raise UsageError(f"a worker at {self.address} cannot run streamcut: {error}; install it there") from None
        except _GONE as error:
            if isinstance(error, OSError) and error.errno is not None:  # Dask's own have no number
                raise
            raise self._lost(f"no connection to the scheduler ({type(error).__name__}: {error})") from None
        finally:
            answer.cancel()
        self.peaks[address] = max(peak, self.peaks.get(address, 0))
        self.traffic += traffic
        return result

    def _lost(self, what: str) -> ClusterLostError:
        more = "--resume continues from the last checkpoint, if any"
        return ClusterLostError(f"the Dask cluster at {self.address} is lost: {what}; {more}")

    def _gathered(self, future: distributed.Future) -> Future[bytes]:
        call = self.client.gather(future, asynchronous=True)
        return asyncio.run_coroutine_threadsafe(call, self.client.loop.asyncio_loop)  # type: ignore[union-attr]

    def _workers(self) -> dict[str, dict[str, Any]]:
        if self.client.status != "running":  # while it connects again every call waits, and all tasks are cancelled
            raise self._lost("no connection to the scheduler")
        return self.client.scheduler_info(n_workers=-1)["workers"]


class _RemoteShards(View):
    """A data set whose shards are read, and scored, by the workers of a cluster; those that are expected are asked for."""

    def __init__(self, cluster: Cluster, data: Dataset, row_state: RowState) -> None:
        super().__init__(data)
        self.manifest = data.manifest
        self._cluster, self._row_state, self._first = cluster, row_state, first_rows(data.manifest)
        self._asked, self._lock = dict[int, distributed.Future](), threading.Lock()
        self._name, self._given_up = "read", lambda: False
        self._work: distributed.Future | None = None
        self._sent: tuple[str, ...] = ()

    @contextmanager
    def scored_by(self, work: Scoring | None, given_up: Callable[[], bool]) -> Iterator[None]:
        """Within, `work` scores the rows; None: they are read alone."""
        self._name, self._sent = ("read", ()) if work is None else (type(work).__name__, work.reads)
        self._work, self._given_up = self._cluster.begin(work), given_up
        try:
            yield
        finally:
            self._asked, self._work = {}, None

    def buffers(self) -> None:
        return None

    def expect(self, *shards: int) -> None:
        with self._lock:
            for shard in shards:
                if len(self._asked) < self._cluster.ahead and shard not in self._asked:
                    self._asked[shard] = self._ask(shard)

    def read(self, shard: int, buffers: None = None) -> Chunk:
        with self._lock:
            future = self._asked.pop(shard) if shard in self._asked else self._ask(shard)
        rows, chunk = self._cluster.result(future, f"shard {shard:06d}", self._given_up)
        start, stop = self._first[shard : shard + 2]
        for name, values in rows.items():
            self._row_state.arrays[name][start:stop] = values
        self._row_state.release(start, stop)
        return chunk

    def _ask(self, shard: int) -> distributed.Future:
        start, stop = self._first[shard : shard + 2]
        arrays = self._row_state.arrays
        rows = {name: arrays[name][start:stop] for name in self._sent if name in arrays}
        return self._cluster.submit(self._name, shard, read_shard, self._work, shard, rows)


class ClusterRunner(Runner):
    """A Runner of passes on a prepared cluster.

    Workers run lanes of passes that keep nothing between rows. For others, and where there is one lane, they read the rows, and
    score them if the pass is `divided`: then only the entries that the rest needs, done here, are sent.
    """

    def __init__(
        self, cluster: Cluster, data: Dataset, lanes: Lanes, workers: int = 1, *, ahead: bool = False,
        row_state: RowState, stop: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._cluster, self._shards = cluster, _RemoteShards(cluster, data, row_state)
        super().__init__(Feed(self._shards), lanes, workers, ahead=ahead, row_state=row_state, stop=stop)

    def run(self, work: Pass[Sums]) -> tuple[Sums, PassReport]:
        """See Runner."""
        if not work.needs_data:
            return super().run(work)
        if len(self.lanes) > 1 and work.pure and work.blocks.streams is None:
            return self._mapped(work)
        theirs, ours = work.divided() or (None, work)
        with self._shards.scored_by(theirs, lambda: work.interruptible and self.stop()):
            total, report = super().run(ours)
        there = self._cluster.traffic
        report.traffic.bytes_read, report.traffic.rows_pinned = there.bytes_read, min(there.rows_pinned, report.traffic.rows)
        return total, report

    def _mapped(self, work: Pass) -> tuple[Any, PassReport]:
        """Run lanes on the workers, and merge their sums in order."""
        cluster, started = self._cluster, time.perf_counter()
        held, futures, total = cluster.begin(work), deque[distributed.Future](), None
        self._going = [cluster.traffic], started
        try:
            for lane in range(len(self.lanes)):
                for place in range(lane + len(futures), min(lane + cluster.ahead, len(self.lanes))):
                    futures.append(self._ask(work, held, place))
                start, stop = self.lanes.rows(lane)
                given_up, what = lambda: work.interruptible and self.stop(), f"rows {start + 1:,} to {stop:,}"
                partial, changed = cluster.result(futures.popleft(), what, given_up)
                for name, array in changed.items():
                    self.rows[name][start:stop] = array
                self.row_state.release(start, stop)
                total = partial if total is None else work.merge(total, partial)
        finally:
            self._going = None
        self.feed.readings.add(cluster.traffic.rows)
        return total, PassReport(time.perf_counter() - started, cluster.traffic)

    def _ask(self, work: Pass, held: distributed.Future | None, lane: int) -> distributed.Future:
        start, stop = self.lanes.rows(lane)
        names = self.rows.keys() if work.row_arrays is None else set(work.row_arrays) & self.rows.keys()
        rows = {name: self.rows[name][start:stop] for name in names}
        return self._cluster.submit(type(work).__name__, lane, run_lane, held, start, stop, rows)
