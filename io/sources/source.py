"""What every source of rows is, and the checks that all of them share."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.redaction import redacted
from streamcut.foundation.systems import resident_bytes
from streamcut.foundation.units import format_bytes, format_enough
from streamcut.io.recipe.recipe import Recipe

AT_ONCE = 1 << 15  # entries of rows that are checked and made canonical together:
_ENTRY = 100  # bytes of memory for each of these entries, about
MAX_GROUPS = 1 << 20  # remembered: 100 MB
SLACK = 32 << 20  # freed arrays kept by the allocator, threads, decompressors, files, late imports
_KERNELS = 128 << 20  # loaded after the inputs are opened
T = TypeVar("T")
U = TypeVar("U")


class Sizes(NamedTuple):
    """Bytes of a block of text, of a single longer row, and of a dictionary that is learned (None: any); parsing threads."""

    block: int = 1 << 19
    row: int = 1 << 28
    keys: int | None = None
    threads: int = 2


class Source(Protocol):
    """Rows of one or several inputs, in order. Conversion and prediction read the same sources.

    paths       of the input files
    identity    what must be equal in a resumed run (JSON types); "inputs" lists [name, bytes, modification time]
    n_features  None: only reading tells
    held_bytes  memory in addition to what is resident once it is opened, and to blocks
    notes       a sentence for each guess that the user should know
    counters    what was unusual in the rows yielded by `blocks` so far
    rejects     the first lines that were left out, with the reasons
    rereads     a resumed run must reread all rows: keys are numbered in order of appearance
    total_rows  None if unknown before reading
    """

    identity: dict
    held_bytes: int

    @property
    def rejects(self) -> Sequence[str]: ...

    @property
    def rereads(self) -> bool: ...

    @property
    def total_rows(self) -> int | None: ...

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def n_features(self) -> int | None: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def counters(self) -> Mapping[str, int]: ...

    def begin(self, sizes: Sizes) -> None:
        """Read with these sizes from now on, and find what has to be known before the first block. Raises BadInputError."""

    def blocks(self, start: dict | None = None) -> Generator[tuple[Chunk, dict]]:
        """Chunks of consecutive rows, each with the position of its start: `blocks(position)` starts there again.

        A chunk's arrays may be reused for the next one. A recurring qid is noticed only when reading
        from the beginning. Raises BadInputError naming the place.
        """

    def recipe(self) -> Recipe | None:
        """How the rows of `blocks` became features, once all of them have been yielded."""


def expect_room(limit: int | None, needed: int, what: str) -> None:
    """Raise MemoryBudgetError if `what`, which is held whole, exceeds what `limit` leaves; names a sufficient limit."""
    least = resident_bytes() + SLACK + _KERNELS + needed
    if limit is not None and needed > SLACK and least > limit:
        raise MemoryBudgetError(
            f"{what} takes {format_bytes(needed)} in one piece, and {format_bytes(limit)} of memory are not enough: at least "
            f"{format_enough(least)} are needed; raise --memory"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """The origin of rows: row i is row `rows[i]` of `file`, and row `first_row` + i overall."""

    file: str
    rows: np.ndarray
    first_row: int

    def __call__(self, row: int) -> str:
        return f"{self.file}: row {int(self.rows[row])} (0-based)"


class GroupCheck:
    """Finds the first row that returns to an earlier group, over all blocks and files.

    Beyond MAX_GROUPS groups they are forgotten, and only a qid above all earlier ones is still known to be new. So sorted
    files of any size pass, and an unsorted file with more groups is refused rather than trusted.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._last, self._top, self._forgot = -1, -1, False

    def first_repeat(self, qid: np.ndarray) -> int | None:
        """Number of the first of these rows (qid int64 (n), the next rows of the data) whose group was left before, else None.

        Raises MemoryBudgetError when that can't be determined in the memory allowed.
        """
        starts = np.flatnonzero(np.concatenate(([self._last], qid[:-1])) != qid)
        for row, group in zip(starts.tolist(), qid[starts].tolist(), strict=True):
            if group in self._seen:
                return row
            if group <= self._top and self._forgot:
                raise MemoryBudgetError(
                    f"after {MAX_GROUPS:,} groups, qid {group} is not above all before it; whether it is new can't be known "
                    "in bounded memory; sort the rows by qid, or use --group-by-qid"
                )
            self._top = max(self._top, group)
            if len(self._seen) == MAX_GROUPS:
                self._seen.clear()
                self._forgot = True
            if not self._forgot:
                self._seen.add(group)
        self._last = int(qid[-1]) if len(qid) else self._last
        return None

    def expect_new(self, qid: np.ndarray, path: str, rows: np.ndarray) -> None:
        """Raise BadInputError if a qid recurs. `rows` (n) are the numbers of these rows in the file `path`."""
        repeat = self.first_repeat(qid)
        if repeat is not None:
            raise BadInputError(
                f"{path}: row {int(rows[repeat])} (0-based): qid {qid[repeat]} comes back after other rows; "
                f"the rows of a qid must stand together (--group-by-qid sorts them)"
            )


def cuts(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most AT_ONCE entries, or one longer row."""
    start, n = 0, len(indptr) - 1
    while start < n:
        stop = max(start + 1, int(np.searchsorted(indptr, indptr[start] + AT_ONCE, side="right")) - 1)
        yield start, stop
        start = stop


def expect_short(entries: int, room: int | None, where: str) -> None:
    """Raise MemoryBudgetError if the entries of the row at `where` take more than `room` bytes; None: any number does."""
    if room is not None and entries > max(AT_ONCE, room // _ENTRY):
        raise MemoryBudgetError(
            f"{where}: the row has {entries:,} entries, and --memory leaves room for {room // _ENTRY:,} in one; raise --memory"
        )


def describe(path: str) -> list:
    """[name, bytes, modification time in ns] of a file or directory; of a URL, a pipe or a frame only the name."""
    if "://" in path or path == "-" or not os.path.exists(path):
        return [redacted(path), None, None]
    return [path, tree_bytes(path), os.stat(path).st_mtime_ns]


def tree_bytes(path: str | Path) -> int:
    """Bytes of a file, or of all files below a directory; links are not followed."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def read_ahead(items: Iterator[T]) -> Generator[T]:
    """`items`, of which a thread makes the next ones meanwhile. Closing does not wait for one that blocks on a silent pipe."""
    ready: queue.Queue[tuple[T, ...] | BaseException] = queue.Queue(1)
    closed = threading.Event()

    def run() -> None:
        try:
            for item in items:
                ready.put((item,))
                if closed.is_set():
                    return
            ready.put(())
        except BaseException as error:  # passed to the thread that asks for the next item
            ready.put(error)

    thread = threading.Thread(target=run, name="streamcut-read", daemon=True)
    thread.start()
    try:
        while answer := ready.get():
            if isinstance(answer, BaseException):
                raise answer
            yield answer[0]
    finally:
        closed.set()
        with suppress(queue.Empty):
            ready.get_nowait()
        thread.join(timeout=1)


def ahead(items: Iterable[T], work: Callable[[T], U], threads: int) -> Generator[tuple[T, Callable[[], U]]]:
    """Each of `items` with a function that returns, or raises, the result of `work` on it.

    A single thread works on demand; several run up to `threads` items ahead. An error of `items` comes after those before it.
    """
    if threads == 1:
        for item in items:
            yield item, partial(work, item)
        return
    working: deque[tuple[T, Future[U]]] = deque()
    pool, late = ThreadPoolExecutor(threads, "streamcut-rows"), None
    try:
        try:
            for item in items:
                working.append((item, pool.submit(work, item)))
                if len(working) > threads:
                    done, future = working.popleft()
                    yield done, future.result
        except BadInputError as error:
            late = error
        while working:
            done, future = working.popleft()
            yield done, future.result
        if late is not None:
            raise late
    finally:
        pool.shutdown(cancel_futures=True)
