"""The tasks of a pass on their way: given out worker by worker, and to others when their worker is lost.

A task is one lane, or, when no data is read, all lanes of a worker, and is bound to its worker, so Dask itself never runs it
elsewhere: who is lost, what moves, and when a lane has killed enough workers, is decided here alone. Each worker has LANES_AHEAD
tasks for each thread at most, so no more partial sums are on their way. A worker that has none left takes over lanes of others.
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

_CHECK = 1.0  # seconds between two checks of the list of workers
_DEATHS = 2  # workers that died while they were at a lane: no more are given it


@dataclass(frozen=True, slots=True)
class Task:
    """Some lanes on their way at a worker; `number` counts tasks in the order in which they were given out."""

    future: distributed.Future
    lanes: tuple[int, ...]
    address: str
    number: int


class Submitter(Protocol):
    """Gives lanes to a worker, and the passes with them that it needs before this one; `large`: they come from other workers."""

    large: bool

    def __call__(self, address: str, lanes: tuple[int, ...], passes: tuple[int, ...]) -> distributed.Future: ...

    def renew(self, addresses: Iterable[str]) -> None:
        """The pass is to be had from these workers from now on."""


class RowsMovedError(Exception):
    """The row state of a lane is not where it was; whoever ended in good order has left it to others."""


class Flights:
    """The tasks of one pass.

    submit   whose futures are of a list of LaneResult, Missing or RowsGone
    shards   of lanes, in words
    movable  lanes may run on workers that have nothing else to do
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
        self.lost = False  # whether workers were, and lanes moved
        self._cluster = cluster
        self._threads = dict(placement.threads_of)  # of the workers that are not lost
        self._queues = queues
        self._submit = submit
        self._shards = shards
        self._movable = movable
        self._task_of: dict[int, Task] = {}  # by lane
        self._number = 0
        self._deaths: Counter[int] = Counter()
        self._buried: set[str] = set()
        self._done = threading.Event()
        self._finished: set[int] = set()  # numbers of tasks that were done, even if what they returned was lost since
        self._seen = self._looked = time.monotonic()

    def next(self, lane: int, given_up: Callable[[], bool]) -> list[LaneResult]:
        """The results of the task of `lane`, the first that is not merged yet. Raises Interrupted when it is given up."""
        while True:
            self._give_out()
            if lane not in self._task_of:
                self._hurry(lane)
            task = self._task_of[lane]
            answer = self._wait(task, given_up)
            if answer is None:  # it was lost and is on its way again
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
        """What `task` returned; None when it has to be done again."""
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
        """Fill up what workers have ahead, from their own queues; who has nothing left to do takes from the longest of others."""
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
        """Give out the lane that all wait for: it came to a queue behind later ones, from a worker that was lost."""
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
        """In the order in which they were given out."""
        return sorted({id(task): task for task in self._task_of.values()}.values(), key=lambda task: task.number)

    def _check(self) -> bool:
        """Move the lanes of workers that are lost to others; whether any moved."""
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
        if gone and self._submit.large:  # others may wait for the pass from those who are gone
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
        """Who of `heirs` {address: threads} has the fewest lanes to do for each thread."""
        todo = Counter(task.address for task in self._task_of.values())
        for address, queue in self._queues.items():
            todo[address] += sum(map(len, queue))
        return min(sorted(heirs), key=lambda address: todo[address] / heirs[address])

    def _bury(self, gone: list[str], stranded: list[Task]) -> None:
        """Say who is lost; raise ClusterLostError when a lane has cost _DEATHS workers."""
        self.lost = True
        for address in gone:
            at_work = [task for task in stranded if task.address == address and task.number not in self._finished]
            for task in at_work[: self._threads.pop(address)]:
                self._deaths.update(task.lanes)
                if self._deaths[task.lanes[0]] >= _DEATHS:
                    what = f"{_DEATHS} workers died one after the other at {self._shards(task.lanes)}"
                    raise lost(self._cluster.address, f"{what}, for lack of memory or of damaged data")
        self._buried.update(gone)
        log.warning(
            "lost %d of %d workers (%s): their lanes move", len(gone), len(gone) + len(self._threads), self._cluster.fates(gone)
        )
