"""One lane on a cluster: workers read, decode and score rows, and the client takes all steps of dual ascent.

Lanes that take steps of their own hold each other up: 16 of them take two to four times the passes of one. Scores of a pass
depend on no step of it, so workers can compute them in any order, a reading (rows of a shard) at a time; they send the client
the scores, and the entries of those rows alone that are not at rest, or whose share in a cut changes. The client does the rest
as on one machine, with the same bits. The row state is at the client, so a lost worker costs only what it was scoring.

In the first pass nothing is at rest: workers read and decode, and send everything.
"""

from __future__ import annotations

import pickle
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import distributed

from streamcut.execution.dask import scoring
from streamcut.execution.dask.cluster import Cluster
from streamcut.execution.dask.flights import Flights
from streamcut.execution.dask.plan import Placement
from streamcut.execution.dask.runner import DaskRunner
from streamcut.execution.feed import Feed, Streams, Traffic
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Pass
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import PassReport, Runner
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, shard_bytes

Reading = tuple[int, int, int]  # (shard, first row, last row + 1)


def runner_on(
    cluster: Cluster, data: Dataset, lanes: Lanes, plan: MemoryPlan, *, scratch: Path, stop: Callable[[], bool]
) -> DaskRunner | ClimbingRunner:
    """The runner of a planned cluster."""
    if not plan.climbing:
        return DaskRunner(cluster, data, lanes, scratch=scratch, stop=stop)
    row_state = RowState(data.manifest.statistics.n_rows, scratch if plan.spilled else None)
    return ClimbingRunner(cluster, data, lanes, row_state=row_state, stop=stop)


class ClimbingRunner(Runner):
    """A Runner of one lane whose rows come from the workers of a prepared and planned cluster, scored if the pass is `divided`.

    Passes over consecutive rows are run by the client alone.
    """

    feed: _ScoredFeed

    def __init__(
        self, cluster: Cluster, data: Dataset, lanes: Lanes, *, row_state: RowState, stop: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(_ScoredFeed(cluster, data, row_state), lanes, ahead=True, row_state=row_state, stop=stop)

    def run(self, work: Pass) -> tuple[Any, PassReport]:
        """See Runner."""
        if work.streams is None:
            return super().run(work)
        theirs, ours = work.divided() or (None, work)
        try:
            self.feed.begin(type(work).__name__, theirs, lambda: work.interruptible and self.stop())
            return super().run(ours)
        finally:
            self.feed.end()


class _ScoredFeed(Feed):
    """A Feed whose streams come from the workers of a cluster between `begin` and `end`."""

    def __init__(self, cluster: Cluster, data: Dataset, row_state: RowState) -> None:
        super().__init__(data)
        self._cluster, self._row_state = cluster, row_state
        self._placement: Placement | None = None
        self._flights: Flights | None = None
        self._numbers: dict[Reading, int] = {}
        self._work: tuple[str, Pass | None, Callable[[], bool]]

    def begin(self, name: str, work: Pass | None, given_up: Callable[[], bool]) -> None:
        """From now on streams are scored with `work`; None: they are only read. `name` is for Dask's dashboard."""
        self._work = name, work, given_up

    def end(self) -> None:
        """No stream is open."""
        self._flights = None

    def mixed(
        self, start: int, stop: int, streams: Streams, buffers: list[object | None], traffic: Traffic, *, ahead: int = 0
    ) -> Generator[Chunk]:
        """See Feed."""
        name, work, _ = self._work
        readings = self._in_turn(streams.ranges(start, stop), streams.rows)
        self._placement = placement = self._cluster.placement(self._placement)
        queues: dict[str, deque[tuple[int, ...]]] = {address: deque() for address in placement.threads_of}
        for number, (shard, *_) in enumerate(readings):
            queues[placement.worker_of[shard]].append((number,))
        job = scoring.Job(uuid.uuid4().hex, work, self._cluster.store, placement.pins)
        submitter = _Submitter(self._cluster, name, job, readings, self._row_state, placement.threads_of)
        told: Any = {"shards": lambda numbers: f"shard {readings[numbers[0]][0]:06d}", "movable": True}
        self._flights = Flights(self._cluster, placement, queues, submitter, **told)
        self._numbers = {reading: number for number, reading in enumerate(readings)}
        yield from super().mixed(start, stop, streams, buffers, traffic, ahead=ahead)

    def rows_of(self, shard: int, start: int, stop: int, buffers: object | None, traffic: Traffic) -> tuple[Chunk, bool]:
        if self._flights is None:
            return super().rows_of(shard, start, stop, buffers, traffic)
        found: Any = self._flights.next(self._numbers[shard, start, stop], self._work[2])
        for name, values in found.rows.items():
            self._row_state.arrays[name][start:stop] = values
        self._row_state.release(start, stop)
        traffic.bytes_read += shard_bytes(self.data.manifest, self.data.manifest.shards[shard]) * (not found.pinned)
        return found.chunk, found.pinned

    def _expect_all(self, shards: Iterable[int]) -> None:
        if self._flights is None:
            super()._expect_all(shards)


class _Submitter:
    """Sends readings to workers, each with the row state that scoring needs (streamcut.execution.dask.flights)."""

    large = True

    def __init__(
        self, cluster: Cluster, name: str, job: scoring.Job, readings: list[Reading], row_state: RowState,
        addresses: Iterable[str],
    ) -> None:  # fmt: skip
        self._cluster, self._name, self._readings, self._row_state = cluster, name, readings, row_state
        self._sent = () if job.work is None else job.work.scored_from
        self._key, self._written = job.key, pickle.dumps(job, protocol=5)
        self.renew(addresses)

    def renew(self, addresses: Iterable[str]) -> None:
        """See Submitter."""
        self._job = self._cluster.held(f"{self._name}-weights", self._written, addresses)

    def __call__(self, address: str, lanes: tuple[int, ...], passes: tuple[int, ...]) -> distributed.Future:
        shard, start, stop = self._readings[lanes[0]]
        arrays = self._row_state.arrays
        rows = {name: arrays[name][start:stop].copy() for name in self._sent if name in arrays}
        self._row_state.release(start, stop)
        return self._cluster.submit(address, self._name, scoring.scored, self._key, shard, start, stop, rows, self._job)
