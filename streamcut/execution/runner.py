"""Runs passes over lanes: in the calling thread, or on a few threads with the same bits.

Partial sums merge in lane order, and a worker that is ahead waits to merge, so there are never more partial sums than workers.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from streamcut.execution.feed import BLOCK_ROWS, Feed, Traffic
from streamcut.execution.passes import Lanes, Pass, Scoring
from streamcut.execution.row_state import Rows, RowState
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.interrupts import GivenUp, result_of, waits_end_by
from streamcut.foundation.systems import give_back
from streamcut.protocols import Sums


class Ready(NamedTuple):
    """A block of rows, and their row state."""

    chunk: Chunk
    rows: Rows


Block = TypeVar("Block")


def one_ahead(
    thread: ThreadPoolExecutor, blocks: Generator[Block], apart: Callable[[Block], bool] = lambda _: True
) -> Generator[Block]:
    """The same blocks; while one is in use, `thread` makes the next, where the two are `apart`: they share no memory."""
    coming = thread.submit(next, blocks, None)
    try:
        while (block := result_of(coming)) is not None:
            if ahead := apart(block):
                coming = thread.submit(next, blocks, None)
            yield block
            if not ahead:
                coming = thread.submit(next, blocks, None)
    finally:
        wait([coming])  # it writes to buffers of the next pass
        blocks.close()


def running_threads(count: int) -> ThreadPoolExecutor:
    """A pool whose threads run already: without memory, Python can wait for ever for a thread to start."""
    pool = ThreadPoolExecutor(count, "lane")
    together = threading.Barrier(count)
    try:
        for future in [pool.submit(together.wait) for _ in range(count)]:
            future.result()
    except RuntimeError as error:
        together.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise MemoryError(f"{count} threads cannot be started ({error})") from error
    return pool


class Turns(Generic[Sums]):
    """Hands out lanes in order, and merges their partials in the same order."""

    def __init__(self, work: Pass[Sums], lanes: int) -> None:
        self._work, self._lanes, self._next, self._merged = work, lanes, 0, 0
        self._changed = threading.Condition()
        self.total = cast("Sums", None)  # until a lane has ended
        self.error: BaseException | None = None

    def take(self) -> int | None:
        """The next lane; None: none is left, or a lane has failed."""
        with self._changed:
            if self._next == self._lanes or self.error is not None:
                return None
            self._next += 1
            return self._next - 1

    def merge(self, lane: int, partial: Sums) -> None:
        """Merge the partial sum of a lane, after those of all lanes before it."""
        with self._changed:
            while self._merged != lane and self.error is None:
                self._changed.wait()
            if self.error is None:
                self.total = partial if self.total is None else self._work.merge(self.total, partial)
                self._merged += 1
                self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Record the error of a lane."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()


ROW_BLOCK = BLOCK_ROWS  # rows visited at once when only the row state is read
_LONG = 1.0  # seconds of a pass after which free memory goes back to the system: in ten passes it grew by 30 MB of 1.7 GB


@dataclass(slots=True)
class PassReport:
    """The cost of one pass."""

    seconds: float
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class Going:
    """Progress of a pass: `rows` of `of`, after `seconds`; bytes_computed of rows as in Traffic."""

    rows: int
    of: int
    seconds: float
    bytes_computed: int


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """A pass, or work on the row state, was abandoned because a stop was requested."""


class Runner:
    """Runs passes over `lanes` of the rows of `feed.data`. `rows` holds their row state: named arrays, an entry for each row.

    row_state  where those arrays live; default: in memory
    stop       called after every block, and while waiting for one; when it returns True, an interruptible pass raises
               Interrupted
    ahead      two threads per worker: one reads rows from several streams and writes the row state of visited ones, the other
               scores them, if the pass is `divided`
    """

    def __init__(
        self,
        feed: Feed,
        lanes: Lanes,
        workers: int = 1,
        *,
        ahead: bool = False,
        row_state: RowState | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.feed = feed
        self.lanes = lanes
        self.workers = min(workers, len(lanes))
        self.row_state = RowState(lanes.bounds[-1]) if row_state is None else row_state
        self.rows: Rows = self.row_state.arrays
        self.stop = stop
        self._pool = running_threads(self.workers) if self.workers > 1 else None
        self._ahead = [(running_threads(1), running_threads(1)) for _ in range(self.workers)] if ahead else []
        self._buffers: list[list[object | None]] = [[] for _ in range(self.workers)]
        self._going: tuple[list[Traffic], float] | None = None  # of the workers of a pass through the data, and when it started

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in [self._pool, *chain.from_iterable(self._ahead)]:
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    @property
    def going(self) -> Going | None:
        """The running pass through the data, None between passes; any thread may read it."""
        if (going := self._going) is None:
            return None
        done, computed = sum(traffic.rows for traffic in going[0]), sum(traffic.bytes_computed for traffic in going[0])
        return Going(done, self.lanes.bounds[-1] - self.lanes.bounds[0], time.perf_counter() - going[1], computed)

    def run(self, work: Pass[Sums]) -> tuple[Sums, PassReport]:
        """The merged partial of all lanes. The first error of any lane is raised."""
        started = time.perf_counter()
        traffics = [Traffic() for _ in range(self.workers)]
        if work.needs_data:
            self._going = traffics, started
            try:
                with waits_end_by(self.stop):
                    total = self._run(work, traffics)
            finally:
                self._going = None
        else:  # no progress to report, nothing to wait for
            total = self._run(work, traffics)
        traffic = traffics[0]
        for part in traffics[1:]:
            traffic += part
        seconds = time.perf_counter() - started
        if work.needs_data and seconds > _LONG:
            give_back()
        return total, PassReport(seconds, traffic)

    def _run(self, work: Pass[Sums], traffics: list[Traffic]) -> Sums:
        turn = Turns(work, len(self.lanes))
        if self._pool is None:
            self._work(turn, work, 0, traffics[0])
            return turn.total
        futures = [self._pool.submit(self._work, turn, work, worker, traffics[worker]) for worker in range(self.workers)]
        try:
            for future in futures:
                result_of(future)
        except BaseException as error:
            turn.fail(error)
            for future in futures:
                future.exception()
            raise
        return turn.total

    def _work(self, turn: Turns[Sums], work: Pass[Sums], worker: int, traffic: Traffic) -> None:
        try:
            if work.needs_data and not self._buffers[worker]:
                self._buffers[worker] = [self.feed.buffers()]
            while (lane := turn.take()) is not None:
                start, stop = self.lanes.rows(lane)
                partial = work.begin(start)
                visits = self._visits(start, stop, work, partial, worker, traffic)
                try:
                    for _ in visits:
                        if turn.error is not None:
                            return
                        if work.interruptible and self.stop():
                            raise Interrupted
                finally:
                    visits.close()
                work.finish(partial, self._rows_of(start, stop), start)
                turn.merge(lane, partial)
        except GivenUp as error:
            ended = Interrupted() if work.interruptible else error
            turn.fail(ended)
            raise ended from None
        except BaseException as error:
            turn.fail(error)
            raise

    def _rows_of(self, start: int, stop: int) -> Rows:
        first, last = self.lanes.bounds[0], self.lanes.bounds[-1]
        if (start, stop) == (first, last):
            return self.rows
        return {name: array[start - first : stop - first] for name, array in self.rows.items()}

    def _visits(self, start: int, stop: int, work: Pass[Sums], partial: Sums, worker: int, traffic: Traffic) -> Generator[None]:
        """Visits the blocks of a lane's rows in order, and stops after each: read, score, visit."""
        if not work.needs_data:
            for first, last in self._row_blocks(start, stop, work):
                work.visit_rows(partial, self._rows_of(first, last))
                self.row_state.release(first, last)
                yield
            return
        threads = self._ahead[worker] if self._ahead and work.blocks.streams is not None else None
        scoring, work = (threads and work.divided()) or (None, work)
        visited: deque[Ready] = deque()
        chunks = self._read(start, stop, work, worker, traffic, visited)
        if threads:  # blocks of several pieces are copies
            chunks = one_ahead(threads[0], chunks, lambda chunk: chunk.pieces is not None)
        ready = self._ready(scoring, chunks)
        if threads:
            ready = one_ahead(threads[1], ready, lambda block: block.chunk.pieces is not None)
        with closing(ready) as blocks:
            for block in blocks:
                work.visit_chunk(partial, block.rows, block.chunk)
                visited.append(block)
                yield
        self._write_back(visited)

    def _read(self, start: int, stop: int, work: Pass, worker: int, traffic: Traffic, visited: deque[Ready]) -> Generator[Chunk]:
        """The lane's blocks of rows; the row state of the `visited` ones is written before the next."""
        buffers, (groups, together, streams) = self._buffers[worker], work.blocks
        if streams is None:
            chunks = self.feed.blocks(start, stop, buffers[0], traffic, groups=groups, together=together)
        else:
            while len(buffers) < streams.number:
                buffers.append(self.feed.buffers())
            chunks = self.feed.mixed(start, stop, streams, buffers[: streams.number], traffic, ahead=2 * bool(self._ahead))
        for chunk in chunks:
            yield chunk
            self._write_back(visited)

    def _ready(self, scoring: Scoring | None, chunks: Generator[Chunk]) -> Generator[Ready]:
        """Blocks with their row state, that of several streams copied into contiguous arrays, after `scoring`.

        Without it, rows are scored just before their steps, for which they are then still in cache.
        """
        with closing(chunks):
            for chunk in chunks:
                parts = [self._rows_of(*piece) for piece in _pieces(chunk)]
                rows = parts[0]
                if chunk.pieces is not None:
                    rows = {name: np.concatenate([part[name] for part in parts]) for name in rows}
                if scoring is not None:
                    scoring.score(rows, chunk)
                yield Ready(chunk, rows)

    def _write_back(self, visited: deque[Ready]) -> None:
        """Write the row state of visited blocks, before their memory is used again."""
        while visited:
            chunk, rows = visited.popleft()
            at = 0
            for start, stop in _pieces(chunk):
                if chunk.pieces is not None:
                    for name, array in self._rows_of(start, stop).items():
                        array[:] = rows[name][at : at + stop - start]
                self.row_state.release(start, stop)
                at += stop - start

    def _row_blocks(self, start: int, stop: int, work: Pass) -> Iterable[tuple[int, int]]:
        """The row ranges visited at once when no data is read."""
        if work.row_arrays == ():
            return ()
        bounds = [*range(start, stop, ROW_BLOCK), stop]
        if work.blocks.groups:
            bounds = [self._next_group(row) for row in bounds]
        return pairwise(bounds)

    def _next_group(self, row: int) -> int:
        """The first row at or after `row` where a group begins."""
        begins = self.rows["begins"]
        while row < len(begins) and not begins[row]:
            row += 1
        return row


def _pieces(chunk: Chunk) -> tuple[tuple[int, int], ...]:
    return chunk.pieces or ((chunk.first_row, chunk.first_row + chunk.n_rows),)
