"""A conversion of many files in parts, each of which may run anywhere: the same bytes as in one process.

1. `convert` makes each file a store of its own in NAME.parts, with its usual reading, checking and resuming.
2. The lengths of all rows, in the order of the files, give the shard borders of the whole, as in ShardCutter.
3. Each shard is gathered from the rows of one part or several, and written to its place.

What a file's rows become must not depend on earlier files. Where a dictionary, or numbers for label words, are learned, the
recipes of two parts differ, which is refused.
"""

from __future__ import annotations

import platform
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.foundation.systems import resident_bytes
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.convert import convert
from streamcut.io.conversion.plan import SLACK
from streamcut.io.dataset import first_rows, held_bytes
from streamcut.io.formats.registry import FORMATS
from streamcut.io.manifest import StatisticsBuilder
from streamcut.io.opening import open_dataset
from streamcut.io.places.outputs import exists
from streamcut.io.places.remote import is_url
from streamcut.io.recipe.comparison import PLAIN, difference
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.buffers import Buffers, buffer_bytes
from streamcut.io.stores.collector import ShardRows
from streamcut.io.stores.remote_writer import RemoteWriter
from streamcut.io.stores.shard_arrays import write_shard
from streamcut.io.stores.spec import shard_rows
from streamcut.io.stores.stored import StoredDataset
from streamcut.io.stores.writer import writer_bytes
from streamcut.io.stores.zarr_writer import ZarrWriter
from streamcut.options.option import flag, options_of

PARTS = ".parts"  # NAME.parts/ holds the stores of single files
_one_at_a_time = threading.Lock()  # among the threads of a worker: memory is planned for one


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `first` … `stop` (0-based, excluding) of part number `part`."""

    part: int
    first: int
    stop: int


def expect_reachable(probe: str, paths: Sequence[str], version: str) -> None:
    """Raise UsageError unless this process runs the same streamcut and sees the inputs and `probe`, a file next to the output."""
    host = platform.node()
    if streamcut.__version__ != version:
        raise UsageError(f"a worker runs streamcut {streamcut.__version__}, here is {version}; install the same everywhere")
    for path in (probe, *paths):
        if not exists(path):
            what = "write the output" if path == probe else "read the inputs"
            raise UsageError(f"{path}: not visible to a worker on {host}; {what} from a folder that all share, or from a URL")


def make_part(path: str, place: str, options: dict[str, Any], memory: int | None) -> None:
    """Convert the file `path` to the store `place`, unless an earlier attempt has done so. Raises what `convert` raises."""
    with _one_at_a_time:
        convert(path, place, **{**options, "memory": memory, "resume": True, "force": True}, on_told=None)


def common_recipe(paths: Sequence[str], parts: Sequence[StoredDataset]) -> Recipe | None:
    """The recipe of all parts. Raises UsageError when they differ, or when their rows cannot be joined file by file."""
    first = parts[0]
    for path, part in zip(paths, parts, strict=True):
        differs = difference(first.recipe or PLAIN, part.recipe or PLAIN)
        if differs is None and (first.recipe or PLAIN).labels != (part.recipe or PLAIN).labels:
            differs = "their labels are other words or numbers"
        if differs is None and (first.recipe or PLAIN).names != (part.recipe or PLAIN).names:
            differs = "their features have other names"
        if differs is not None:
            raise UsageError(
                f"{path}: its features were made differently from those of {paths[0]} ({differs}); what is learned from "
                "rows is learned by one machine: give --hash-bits, --label-map or --recipe, or leave --scheduler out"
            )
        arrays = [set(each.manifest.shards[0].arrays) & {"qid", "weight"} for each in (first, part)]
        if "qid" in arrays[1]:
            raise UsageError(f"{path}: rows with a qid are joined on one machine; leave --scheduler out")
        if arrays[0] != arrays[1]:
            raise BadInputError(f"{path}: some inputs have weights and others do not")
    return first.recipe


def counters_of(parts: Sequence[StoredDataset]) -> dict[str, int]:
    """What was unusual in the input."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part.manifest.source.get("counters", {}))
    return dict(total)


def cut(parts: Sequence[StoredDataset], shard_nnz: int) -> Iterator[list[Rows]]:
    """The rows of each shard of the whole, in order. Reads only where the rows of the parts begin."""
    most, rows, entries = shard_rows(shard_nnz), 0, 0
    taken: list[Rows] = []
    for number, part in enumerate(parts):
        for shard, first in enumerate(first_rows(part.manifest)[:-1]):
            ends = np.cumsum(np.diff(_indptr(part, shard)))
            done = 0
            while done < len(ends):
                before = int(ends[done - 1]) if done else 0
                fitting = int(np.searchsorted(ends, before + max(shard_nnz - entries, -1), side="right")) - done
                fitting = max(0, min(fitting, most - rows))
                if fitting == 0 and rows == 0:
                    fitting = 1  # a row beyond the limit stands alone
                if fitting:
                    taken.append(Rows(number, first + done, first + done + fitting))
                    rows, entries, done = rows + fitting, entries + int(ends[done + fitting - 1]) - before, done + fitting
                else:
                    yield _joined(taken)
                    taken, rows, entries = [], 0, 0
    if taken:
        yield _joined(taken)


def _joined(ranges: list[Rows]) -> list[Rows]:
    """The same rows in as few ranges as possible."""
    found = ranges[:1]
    for each in ranges[1:]:
        last = found[-1]
        if (last.part, last.stop) == (each.part, each.first):
            found[-1] = Rows(last.part, last.first, each.stop)
        else:
            found.append(each)
    return found


def _indptr(part: StoredDataset, shard: int) -> np.ndarray:
    info = part.manifest.shards[shard]
    array = info.arrays["indptr"]
    out = np.empty(array.size, array.dtype)
    part.fill(shard, {"indptr": out}, Buffers([info]))
    return out.astype(np.int64)


def gathering_bytes(parts: Sequence[StoredDataset], shard_nnz: int, remote: bool) -> int:
    """Memory that `gather` takes in addition to the process itself."""
    return SLACK + max(buffer_bytes(part.manifest) + held_bytes(part) for part in parts) + writer_bytes(shard_nnz, 1, remote)


def gather(root: str, shard: int, rows: Sequence[Rows], places: Sequence[str], shard_nnz: int, memory: int | None):
    """Write shard number `shard`, made of `rows` of the stores `places`, below `root`.

    Returns (ShardInfo, state of a StatisticsBuilder). Raises MemoryBudgetError, and the errors of reading and writing stores.
    """
    with _one_at_a_time:
        parts = {each.part: _opened(places[each.part]) for each in rows}
        needed = resident_bytes() + gathering_bytes(list(parts.values()), shard_nnz, is_url(root))
        if memory is not None and needed > memory:
            raise MemoryBudgetError(
                f"--memory: {format_bytes(memory)} is not enough for a worker: {format_bytes(needed)} are needed to write "
                "a shard; raise it, or give workers more memory"
            )
        collected = ShardRows(shard_nnz)
        for each in rows:
            for chunk in _chunks(parts[each.part], each):
                collected.append(chunk)
        counted = StatisticsBuilder()
        counted.add(collected.chunk())
        files = RemoteWriter(root) if is_url(root) else ZarrWriter(Path(root))
        try:
            written = write_shard(files, shard, collected)
            if isinstance(files, RemoteWriter):
                files.arrived(shard)
            return written, counted.state()
        finally:
            if isinstance(files, RemoteWriter):
                files.close()


@lru_cache(maxsize=4)
def _opened(place: str) -> StoredDataset:
    return open_dataset(place)


def _chunks(part: StoredDataset, rows: Rows) -> Iterator[Any]:
    firsts, buffers = first_rows(part.manifest), part.buffers()
    for shard, first in enumerate(firsts[:-1]):
        start, stop = max(rows.first, first), min(rows.stop, firsts[shard + 1])
        if start < stop:
            yield part.read(shard, buffers).rows(start - first, stop - first)


def forget() -> None:
    """Close the parts before they change or are removed."""
    _opened.cache_clear()


def expect_parts_possible(kind: str, paths: Sequence[str], settings: Any) -> None:
    """Raise UsageError for a conversion that must run on one machine."""
    alone = {"shuffle": None, "split": None, "group_by_qid": False, "on_error": "raise", "backend": "zarr"}
    for name, usual in alone.items():
        if getattr(settings, name) != usual:
            raise UsageError(
                f"{flag(name, options_of(settings)[name])}: not available on a cluster; convert first, then apply it to the store"
            )
    if not FORMATS[kind].parts:
        raise UsageError(f"--scheduler: a cluster converts text and tables, not {kind}; leave it out")
    if "-" in paths:
        raise UsageError("--scheduler: workers do not see standard input; give files or URLs")
