"""The row caches of a worker process: in memory, and on its disk where memory does not suffice for all its lanes.

A cache belongs to a lane and is determined by the passes since it was filled (streamcut.execution.cache_passes). So losing one
is harmless: a worker without a cache that has seen the right passes repeats them.
"""

from __future__ import annotations

import copy
import logging
import pickle
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamcut.errors import DiskFullError
from streamcut.execution.row_cache import RowCache
from streamcut.foundation.files import disk_full
from streamcut.foundation.opened import opened_file

log = logging.getLogger(__name__)

Seen = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Slot:
    """A slot for the cache of one lane, and the numbers of the passes that it has seen; the first filled it."""

    cache: RowCache
    lane: int = -1
    seen: Seen = ()


class Slots:
    """The slots of one run, identified by its name.

    Evicted first are caches of an older filling, then the most recently used: lanes come cyclically, so it is needed last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run = ""
        self._idle: list[Slot] = []
        self._taken = 0
        self._on_disk: dict[int, tuple[Path, Seen]] = {}  # by lane: the file of a cache, and the passes it has seen

    def clear(self) -> None:
        """Forget all caches."""
        with self._lock:
            self._idle.clear()
            self._on_disk.clear()

    @contextmanager
    def take(self, run: str, lane: int, passes: Seen, now: int, capacity: int, like: RowCache, folder: Path) -> Iterator[Slot]:
        """A slot for `lane`, exclusive to the caller: it has seen the first of `passes`, or all, or none.

        At most `capacity` stay in memory; others go to files in `folder`. New slots get an empty cache of the size of `like`.
        The caller, at pass number `now`, records what the slot has seen; if it fails, the slot counts as empty.
        """
        filled_by = (*passes, now)[0]
        with self._lock:
            if run != self._run:
                self._idle.clear()
                self._on_disk.clear()
                self._run = run
            self._idle = [slot for slot in self._idle if slot.cache.fits(like)]
            slot = next((slot for slot in self._idle if slot.lane == lane), None)
            leaving = None
            if slot is not None:
                self._idle.remove(slot)
            elif self._idle and len(self._idle) + self._taken >= capacity:
                leaving = self._leave(filled_by)
            path, seen = self._on_disk.pop(lane, (None, ()))
            self._taken += 1
        try:
            if leaving is not None:
                self._write(leaving, filled_by, folder)
            if slot is None:
                slot = Slot(copy.copy(like) if leaving is None else leaving.cache)
                leaving = None
                if path is not None and seen == passes[: len(seen)]:
                    slot.cache = copy.copy(like)  # it takes no memory yet, and the old one is freed
                    slot.cache.adopt(_read(path))
                    slot.seen = seen
            elif slot.seen != passes[: len(slot.seen)]:
                slot.seen = ()
            if path is not None:
                path.unlink(missing_ok=True)
            slot.lane = -1
            yield slot
            slot.lane = lane
        finally:
            crowded = []
            with self._lock:
                self._taken -= 1
                if run == self._run and slot is not None:
                    self._idle.append(slot)
                while self._idle and len(self._idle) + self._taken > capacity:
                    crowded.append(self._leave(filled_by))
            for each in crowded:
                self._write(each, filled_by, folder)

    def _leave(self, filled_by: int) -> Slot:
        """The slot to evict from memory."""
        older = [slot for slot in self._idle if slot.seen[:1] != (filled_by,) or slot.lane < 0]
        slot = older[0] if older else self._idle[-1]
        self._idle.remove(slot)
        return slot

    def _write(self, slot: Slot, filled_by: int, folder: Path) -> None:
        """Keep a cache in a file if it is of this filling and the disk has space."""
        lane, seen = slot.lane, slot.seen
        if lane < 0 or seen[:1] != (filled_by,):
            return
        path = folder / f"cache.{lane}-{uuid.uuid4().hex}"
        try:
            with disk_full(path), open(path, "wb") as file:
                arrays: list[pickle.PickleBuffer] = []
                rest = pickle.dumps(slot.cache.content(), protocol=5, buffer_callback=arrays.append)
                pickle.dump((rest, [array.raw().nbytes for array in arrays]), file)
                for array in arrays:
                    file.write(array.raw())
        except (DiskFullError, OSError) as error:
            log.warning("a row cache is refilled for every sweep: %s", error)
            path.unlink(missing_ok=True)
            return
        with self._lock:
            self._on_disk[lane] = path, seen


def _read(path: Path) -> dict[str, Any]:
    with opened_file(path) as file:
        rest, sizes = pickle.load(file)
        arrays = [bytearray(size) for size in sizes]
        for array in arrays:
            file.readinto(array)
    return pickle.loads(rest, buffers=arrays)
