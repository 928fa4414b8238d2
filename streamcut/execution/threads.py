"""The threads of a pass: pools that run already, the next block made ahead, lanes handed out and merged in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Generic, NamedTuple, TypeVar, cast

from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.interrupts import result_of
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
