"""Several trainings at once over the same rows, each shard read, verified and decoded once for all of them.

Every training runs in a thread of its own, as it would alone, and reads shard after shard by a `Reader`. The shards form one
stream, round and round; a few of them are decoded at a time, and one makes way for the next when all readers have gone past it.
So a reader that is ahead waits, all go through the data together, and whoever needs a pass more than others has it to itself.
What a training computes does not depend on the others, unless they share a row cache (streamcut.execution.row_pool): it gets the
same rows in the same order.

No more than `workers` of the threads run at a time, which bounds the memory of whatever they need between two shards. One that
waits for a shard lets another run; one that has a shard keeps it until it asks for the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from streamcut.chunk import Chunk
from streamcut.execution.feed import EXPECTED
from streamcut.execution.runner import Interrupted
from streamcut.io.dataset import Dataset, ShownDataset, shard_bytes
from streamcut.io.row_view import Space
from streamcut.systems import give_back

T = TypeVar("T")
AHEAD = 1  # shards decoded while all readers are at another one


class SharedReading:
    """Reads `data` for several trainings; `bytes_read` were decoded so far. `pinned` shards are kept once they were read."""

    def __init__(self, data: Dataset, workers: int) -> None:
        self.data = data
        self.bytes_read = 0
        self._sizes = [shard_bytes(data.manifest, shard) for shard in data.manifest.shards]
        self._kept: dict[int, Chunk] = {}
        self._changed = threading.Condition()
        self._spaces = [Space() for _ in range(workers)]  # of those that may run now; each takes one
        self._decoding = False
        self.pin(frozenset())
        self._running: set[Reader] = set()
        self._error: BaseException | None = None

    def pin(self, shards: frozenset[int]) -> None:
        """Keep these in memory from now on; while nothing runs."""
        self.pinned = shards
        self._streamed = [shard for shard in range(len(self._sizes)) if shard not in shards]
        self._place_of = {shard: place for place, shard in enumerate(self._streamed)}
        # buffers that hold no shard; the others, by the place of their shard in the stream; the place of the next to decode
        self._buffers: list[Any] = [self.data.buffers() for _ in range(min(1 + AHEAD, len(self._streamed)))]
        self._decoded: dict[int, tuple[Chunk, Any]] = {}
        self._next = 0

    @property
    def failed(self) -> bool:
        """Whether one of the trainings ended with an error: all others should stop."""
        return self._error is not None

    def run(self, works: Sequence[tuple[Reader, Callable[[], T]]]) -> list[T]:
        """What each of `works` returns; each reads by its own reader alone. Raises the first error of any of them."""
        with self._changed:
            self._error, self._decoding = None, False
            self._running = {reader for reader, _ in works}
            for reader in self._running:
                reader.place = self._next
        with ThreadPoolExecutor(len(works), "training") as pool:
            futures = [pool.submit(self._work, reader, work) for reader, work in works]
            try:
                done = [future.exception() for future in futures]
            except BaseException as error:  # of this thread: Ctrl-C
                self._fail(error)
                raise
        if self._error is not None:
            raise self._error
        for problem in done:
            if problem is not None:
                raise problem
        return [future.result() for future in futures]

    def _work(self, reader: Reader, work: Callable[[], T]) -> T:
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._spaces)
                reader.space = self._spaces.pop()
            return work()
        except Interrupted:
            raise
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            with self._changed:
                self._running.discard(reader)
                self._let_run(reader)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def wait(self, reader: Reader, ready: Callable[[], bool]) -> None:
        """Let others run until `ready`, which is asked after each `change`. Raises Interrupted when one of them has failed."""
        give_back()  # what this thread has freed is for those that run now
        with self._changed:
            self._let_run(reader)
            self._changed.wait_for(lambda: self._error is not None or (bool(self._spaces) and ready()))
            if self._error is not None:
                raise Interrupted
            reader.space = self._spaces.pop()

    @contextmanager
    def change(self) -> Iterator[None]:
        """While something changes that others wait for; they are told of it."""
        with self._changed:
            yield
            self._changed.notify_all()

    def read(self, reader: Reader, shard: int) -> Chunk:
        """Shard number `shard` for `reader`, which does not need the last one any more."""
        if shard in self.pinned:
            return self._pinned(shard)
        if reader not in self._running:  # alone, before or after all
            return self._read(shard, None)
        count = len(self._streamed)
        with self._changed:
            reader.place += (self._place_of[shard] - reader.place) % count
            self._changed.notify_all()
            if reader.place in self._decoded:
                return self._decoded[reader.place][0]
            self._let_run(reader)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._may_go_on(reader))
                if self._error is not None:
                    raise Interrupted
                reader.space = self._spaces.pop()
                if reader.place in self._decoded:
                    return self._decoded[reader.place][0]
                place, buffers = self._due(), self._buffers.pop()
                assert place is not None
                self._decoding, self._next = True, place + 1
            self.data.expect(*(self._streamed[each % count] for each in range(place, place + min(EXPECTED, count))))
            chunk = self._read(self._streamed[place % count], buffers)
            with self._changed:
                self._decoding = False
                self._decoded[place] = chunk, buffers
                self._changed.notify_all()
                if place == reader.place:
                    return chunk
                self._let_run(reader)

    def _may_go_on(self, reader: Reader) -> bool:
        """Whether `reader` waits no longer: its shard is there, or the next one can be decoded, or all is over."""
        if self._error is not None:
            return True
        return bool(self._spaces) and (reader.place in self._decoded or self._due() is not None)

    def _due(self) -> int | None:
        """The place of the shard to decode now; None while one is being decoded, or there are no buffers for another."""
        first = min(reader.place for reader in self._running)
        for place in [place for place in self._decoded if place < first]:
            self._buffers.append(self._decoded.pop(place)[1])
        return max(self._next, first) if self._buffers and not self._decoding else None

    def _let_run(self, reader: Reader) -> None:
        """Another may run instead of `reader`."""
        if reader.space is not None:
            self._spaces.append(reader.space)
            reader.space = None
        self._changed.notify_all()

    def _pinned(self, shard: int) -> Chunk:
        with self._changed:  # all but the first find it there at once
            if shard not in self._kept:
                self._kept[shard] = self._read(shard, None)
            return self._kept[shard]

    def _read(self, shard: int, buffers: Any) -> Chunk:
        chunk = self.data.read(shard, buffers)
        self.bytes_read += self._sizes[shard]  # one at a time
        return chunk


class Reader(ShownDataset):
    """The data of a SharedReading as one training sees it: it reads shards in their order, from the first on, in each pass."""

    def __init__(self, shared: SharedReading) -> None:
        self.inner = shared.data
        self.manifest, self.path, self.recipe = shared.data.manifest, shared.data.path, shared.data.recipe
        self.place = 0  # in the stream: of the shard in use, or waited for
        self.space: Space | None = None
        self.shared = shared

    def buffers(self) -> None:
        """None: those of the shared reading are used."""

    def read(self, shard: int, buffers: Any = None) -> Chunk:
        return self.shared.read(self, shard)

    def expect(self, *shards: int) -> None:
        """The shared reading knows what comes next."""

    def own_space(self) -> Space:
        """Memory for what is made of the present shard."""
        return self.space or Space()

    def extra(self, name: str) -> bytes:
        """The content of a file of the store."""
        return self.inner.extra(name)  # type: ignore[attr-defined]
