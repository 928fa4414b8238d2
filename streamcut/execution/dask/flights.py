"""The tasks of a pass in flight: assigned to workers, and reassigned when a worker is lost.

A task is one lane, or, when no data is read, all lanes of a worker, and is bound to its worker, so Dask itself never runs it
elsewhere: which workers are lost, what moves, and when a lane has killed too many workers is decided here alone. Each worker has
at most LANES_AHEAD tasks per thread, which bounds the partial sums in flight. An idle worker takes over lanes of others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, Protocol

import distributed

from streamcut.execution.dask.cluster import POLL, Cluster, lost, lost_if_silent
from streamcut.execution.dask.plan import LANES_AHEAD, Placement
from streamcut.execution.dask.worker import LaneResult, Missing, RowsGone
from streamcut.execution.runner import Interrupted

log = logging.getLogger(__name__)

_CHECK = 1.0  # seconds between checks of the list of workers
_DEATHS = 2  # workers that died while processing a lane, after which it is given to no other


@dataclass(frozen=True, slots=True)
class Task:
    """Some lanes in flight at a worker; `number` counts tasks in the order of assignment."""

    future: distributed.Future
    lanes: tuple[int, ...]
    address: str
    number: int


class Submitter(Protocol):
    """Sends lanes to a worker, with the earlier passes they need; `large`: passes come from other workers."""

    large: bool

    def __call__(self, address: str, lanes: tuple[int, ...], passes: tuple[int, ...]) -> distributed.Future: ...

    def renew(self, addresses: Iterable[str]) -> None:
        """From now on these workers hold the pass."""


class RowsMovedError(Exception):
    """The row state of a lane is not where it was; a worker that shut down in good order has handed it on."""


class Flights:
    """The tasks of one pass.

    submit   returns futures of a list of LaneResult, Missing or RowsGone
    shards   describes the shards of lanes
    movable  lanes may run on idle workers
    """

    def __init__(
        self,
        cluster: Cluster,
        placement: Placement,
        queues: dict[str, deque[tuple[int, ...]]],
        submit: Submitter,
        *,
        shards: Callable[[Sequence[int]], str],
        movable: bool,
    ) -> None:
        self.lost = False  # whether workers were lost and lanes moved
        self._cluster = cluster
        self._threads = dict(placement.threads_of)  # of the workers not lost
        self._queues = queues
        self._submit = submit
        self._shards = shards
        self._movable = movable
        self._task_of: dict[int, Task] = {}  # by lane
        self._number = 0
        self._deaths: Counter[int] = Counter()
        self._buried: set[str] = set()
        self._done = threading.Event()
        self._finished: set[int] = set()  # numbers of finished tasks, even if their results were lost since
        self._seen = self._looked = time.monotonic()

    def next(self, lane: int, given_up: Callable[[], bool]) -> list[LaneResult]:
        """The results of the task of `lane`, the first not merged yet. Raises Interrupted when `given_up`."""
        while True:
            self._give_out()
            if lane not in self._task_of:
                self._hurry(lane)
            task = self._task_of[lane]
            answer = self._wait(task, given_up)
            if answer is None:  # it was lost and has been sent again
                continue
            if isinstance(answer, Missing):
                self._send(task.address, task.lanes, answer.passes)
                continue
            if isinstance(answer, RowsGone):
                raise RowsMovedError(f"the workers that had the row state of {self._shards([answer.lane])} are gone")
            for done in task.lanes:
                del self._task_of[done]
            return answer

    def _wait(self, task: Task, given_up: Callable[[], bool]) -> Any:
        """What `task` returned; None when it has to be repeated."""
        answer = None
        try:
            while True:
                if given_up():
                    raise Interrupted
                if answer is None and task.future.done():
                    answer = self._cluster.gather([task.future])
                if answer is not None and wait([answer], timeout=POLL).done:
                    with lost_if_silent(self._cluster.address):
                        return answer.result()[0]
                if answer is None and self._done.wait(POLL):
                    self._done.clear()
                    self._give_out()
                if time.monotonic() - self._looked > _CHECK and self._check() and self._task_of[task.lanes[0]] is not task:
                    return None
        finally:
            if answer is not None:
                answer.cancel()

    def _give_out(self) -> None:
        """Top up the workers' tasks from their own queues; an idle worker takes from the longest other queue."""
        tasks = self._tasks()
        going = Counter(task.address for task in tasks)
        busy = {task.address for task in tasks if task.number not in self._finished}
        for address, threads in self._threads.items():
            while going[address] < LANES_AHEAD * threads:
                queue = self._queues.get(address)
                if not queue and self._movable and address not in busy:
                    queue = max(self._queues.values(), key=len, default=None)
                if not queue:
                    break
                self._send(address, queue.popleft())
                going[address] += 1
                busy.add(address)

    def _hurry(self, lane: int) -> None:
        """Send the lane that all wait for: from a lost worker, it was queued behind later ones."""
        address, lanes = next((address, lanes) for address, queue in self._queues.items() for lanes in queue if lane in lanes)
        self._queues[address].remove(lanes)
        self._send(address, lanes)

    def _send(self, address: str, lanes: tuple[int, ...], passes: tuple[int, ...] = ()) -> None:
        with lost_if_silent(self._cluster.address):
            future = self._submit(address, lanes, passes)
        self._number += 1
        task = Task(future, lanes, address, self._number)
        future.add_done_callback(lambda _: self._note(task))
        self._task_of.update(dict.fromkeys(lanes, task))

    def _note(self, task: Task) -> None:
        self._finished.add(task.number)
        self._done.set()

    def _tasks(self) -> list[Task]:
        """The tasks in the order of assignment."""
        return sorted({id(task): task for task in self._task_of.values()}.values(), key=lambda task: task.number)

    def _check(self) -> bool:
        """Move the lanes of lost workers to others; returns whether any moved."""
        self._seen, self._looked = self._cluster.watch(self._seen), time.monotonic()
        running = self._cluster.running()
        stranded = [task for task in self._tasks() if task.address not in running]
        gone = [address for address in self._threads if address not in running]
        if gone:
            self._bury(gone, stranded)
        if not stranded and not any(self._queues.get(address) for address in self._buried):
            return False
        heirs = {worker.address: worker.threads for worker in self._cluster.members()}
        if not heirs:
            return False
        self._threads |= heirs
        if gone and self._submit.large:  # others may wait for the pass from lost workers
            self._submit.renew(heirs)
            stranded = [task for task in self._tasks() if task.number not in self._finished or task in stranded]
        for address in self._buried:
            for lanes in self._queues.pop(address, ()):
                self._queues.setdefault(self._least(heirs), deque()).append(lanes)
        for task in stranded:
            self._send(self._least(heirs) if task.address in self._buried else task.address, task.lanes)
        self._give_out()
        return bool(stranded)

    def _least(self, heirs: dict[str, int]) -> str:
        """The worker of `heirs` {address: threads} with the fewest pending lanes per thread."""
        todo = Counter(task.address for task in self._task_of.values())
        for address, queue in self._queues.items():
            todo[address] += sum(map(len, queue))
        return min(sorted(heirs), key=lambda address: todo[address] / heirs[address])

    def _bury(self, gone: list[str], stranded: list[Task]) -> None:
        """Report the lost workers; raise ClusterLostError when a lane has killed _DEATHS workers."""
        self.lost = True
        for address in gone:
            at_work = [task for task in stranded if task.address == address and task.number not in self._finished]
            for task in at_work[: self._threads.pop(address)]:
                self._deaths.update(task.lanes)
                if self._deaths[task.lanes[0]] >= _DEATHS:
                    what = f"{_DEATHS} workers died one after the other while processing {self._shards(task.lanes)}"
                    raise lost(self._cluster.address, f"{what}, from lack of memory or damaged data")
        self._buried.update(gone)
        log.warning(
            "lost %d of %d workers (%s): their lanes move", len(gone), len(gone) + len(self._threads), self._cluster.fates(gone)
        )
