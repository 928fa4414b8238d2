"""Sources of rows: the interface of every source, and the source that reads files by TableReaders."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.opened import readable
from streamcut.foundation.redaction import redacted
from streamcut.foundation.units import format_bytes
from streamcut.io.recipe.comparison import difference
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.canonical import RawRows, RowRules, canonical
from streamcut.io.sources.labels import Labels

MAX_GROUPS = 1 << 20  # remembered: 100 MB
T = TypeVar("T")
U = TypeVar("U")
ENTRY_BYTES = 96  # a raw entry, its checks and its canonical form, at the peak of `canonical`


class RowSource(Protocol):
    """Rows of one or several inputs, in order.

    identity  what must be equal in a resumed run (JSON types); "inputs" lists [name, bytes, modification time]
    counters  what was unusual in the rows yielded by `blocks` so far
    """

    identity: dict

    @property
    def counters(self) -> Mapping[str, int]: ...

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """Chunks of consecutive rows, each with the position of its start: `blocks(position)` starts there again.

        A chunk's arrays may be reused for the next one. A recurring qid is noticed only when reading
        from the beginning. Raises BadInputError naming the place.
        """

    def recipe(self) -> Recipe | None:
        """How the rows of `blocks` became features, once all of them have been yielded."""


class BlockSize(NamedTuple):
    """Entries per piece: normally at most `usual`, and `most` for a single longer row."""

    usual: int
    most: int


class TableReader(Protocol):
    """One file of `n_rows` rows that can be read from any row; `n_features` is None if only reading would tell.

    `held_bytes` is its memory in addition to the rows that it yields.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int | None: ...

    @property
    def held_bytes(self) -> int: ...

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        """Rows from number `start` on, in pieces cut by `row_ranges`."""


class TableSource:
    """RowSource over TableReaders, one after another. `paths` name them in messages; `grouped`: a qid may not recur."""

    def __init__(
        self,
        paths: list[str],
        readers: Sequence[TableReader],
        rules: RowRules,
        size: BlockSize,
        labels: Labels,
        grouped: bool = True,
    ) -> None:
        widths = {reader.n_features for reader in readers if reader.n_features is not None}
        if len(widths) > 1 and rules.n_features is None:
            found = ", ".join(map(str, sorted(widths)))
            raise BadInputError(f"the inputs have {found} features; say how many there are with --n-features")
        self.paths, self.readers, self.rules, self.size, self.grouped = paths, readers, rules, size, grouped
        self.rows = np.empty(0, np.int64)  # of the file, in the last block
        self.n_features = rules.n_features if rules.n_features is not None else next(iter(widths), None)
        self.identity = {"inputs": [describe(path) for path in paths]}
        self.counters: Counter[str] = Counter()
        self.total_rows = sum(reader.n_rows for reader in readers)
        self.labels = labels
        self._recipe = self._common_recipe()

    def recipe(self) -> Recipe:
        """The recipe of the inputs, with the numbers of label words."""
        words = tuple(self.labels.words.items())
        if not words:
            return self._recipe
        return replace(self._recipe, labels=replace(self._recipe.labels, words=words, learned=not self.labels.mapped))

    def _common_recipe(self) -> Recipe:
        """Raises BadInputError for inputs of different recipes."""
        found = [getattr(reader, "recipe", None) or Recipe() for reader in self.readers]
        found = [replace(recipe, dtype=self.rules.dtype or recipe.dtype) for recipe in found]
        for path, other in zip(self.paths, found, strict=True):
            differs = difference(found[0], other)
            if differs is None and other.labels != found[0].labels and not self.labels.mapped:
                differs = "their labels are other words or numbers"
            if differs is not None:
                raise BadInputError(f"{path}: prepared by another recipe than {self.paths[0]}: {differs}")
        return found[0]

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """As in RowSource. A recurring qid is noticed only among the rows from `start` on."""
        begin = start or {"file": 0, "row": 0, "given": 0, "counters": {}, "words": []}
        self.counters = Counter(begin["counters"])
        self.labels.words.update(begin["words"])
        given = begin["given"]
        self.labels.numbers = (given > 0 and not begin["words"]) or None
        has_qid, groups = None, GroupCheck()
        for number in range(begin["file"], len(self.readers)):
            row = begin["row"] if number == begin["file"] else 0
            for raw in self._raw_rows(number, row):
                counters, words = dict(self.counters), list(self.labels.words.items())
                position = {"file": number, "row": row, "given": given, "counters": counters, "words": words}
                chunk = canonical(raw, self.rules, self.counters, self.paths[number], given, row, self.labels)
                row += chunk.n_rows
                labelled = None
                if self.labels.skip and np.isnan(chunk.y).any():
                    labelled = np.flatnonzero(~np.isnan(chunk.y))
                    chunk = self._labelled(chunk, labelled)
                self.rows = position["row"] + (np.arange(chunk.n_rows) if labelled is None else labelled)
                if chunk.n_rows == 0:
                    continue
                if has_qid not in (None, chunk.qid is not None):
                    raise BadInputError(
                        f"{self.paths[number]}: some inputs have a qid and others do not; give one to all of them, or to none"
                    )
                has_qid = chunk.qid is not None
                if chunk.qid is not None and self.grouped:
                    check_groups(groups, chunk.qid, self.paths[number], position["row"], labelled)
                yield chunk, position
                given += chunk.n_rows

    def _raw_rows(self, number: int, row: int) -> Iterator[RawRows]:
        with readable(self.paths[number]):
            yield from self.readers[number].rows(row, self.size)

    def _labelled(self, chunk: Chunk, rows: np.ndarray) -> Chunk:
        """The rows that have a label."""
        self.counters["rows without label left out"] += chunk.n_rows - len(rows)
        from streamcut.io.rows import take_rows  # Numba, not needed elsewhere in this file

        return take_rows(chunk, rows)


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
                    f"after {MAX_GROUPS:,} groups, qid {group} is not above all before it; whether it is new can't be told "
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


def check_groups(groups: GroupCheck, qid: np.ndarray, path: str, row: int, kept: np.ndarray | None = None) -> None:
    """Raise BadInputError if a qid recurs. The rows are those of `path` from `row` on; `kept`: only these of them."""
    repeat = groups.first_repeat(qid)
    if repeat is not None:
        place = row + (repeat if kept is None else int(kept[repeat]))
        raise BadInputError(
            f"{path}: row {place} (0-based): qid {qid[repeat]} comes back after other rows; "
            f"the rows of a qid must stand together (--group-by-qid sorts them)"
        )


def row_ranges(indptr: np.ndarray, size: BlockSize, where: str, first_row: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most `size.usual` entries each, or one longer row. Raises MemoryBudgetError beyond `size.most`."""
    start, n = 0, len(indptr) - 1
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + size.usual, side="right")) - 1
        if stop == start:
            stop = start + 1
            entries = int(indptr[stop] - indptr[start])
            if entries > size.most:
                needed, left = format_bytes(entries * ENTRY_BYTES), format_bytes(size.most * ENTRY_BYTES)
                raise MemoryBudgetError(
                    f"{where}: row {first_row + start} (0-based) has {entries:,} entries and needs {needed} in one piece, "
                    f"but --memory leaves {left} for it; raise --memory"
                )
        yield start, stop
        start = stop


def describe(path: str) -> list:
    """[name, bytes, modification time in ns] of a file or directory; for a URL only the name is known."""
    if "://" in path:
        return [redacted(path), None, None]
    return [path, tree_bytes(path), os.stat(path).st_mtime_ns]


def tree_bytes(path: str | Path) -> int:
    """Bytes of a file, or of all files below a directory; links are not followed."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """`items`, none of which is None; the next one is made by another thread meanwhile."""
    with ThreadPoolExecutor(1, "streamcut-read") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


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
