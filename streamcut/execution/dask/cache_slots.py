"""The row caches that a worker process of a cluster has in memory.

A cache belongs to a lane and follows from the passes that it has seen since it was filled (streamcut.execution.cache_passes). So
none is ever written to disk: who finds none that has seen the right passes repeats them.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streamcut.execution.row_cache import RowCache


@dataclass(slots=True, eq=False)
class Slot:
    """A place for the cache of one lane, and the passes that it has seen: their numbers, the first filled it."""

    cache: RowCache
    lane: int = -1
    seen: tuple[int, ...] = ()


class Slots:
    """Those of one run, which its name tells from others; the one used last stays longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run = ""
        self._idle: list[Slot] = []
        self._taken = 0

    def clear(self) -> None:
        """Forget all caches."""
        with self._lock:
            self._idle.clear()

    @contextmanager
    def take(self, run: str, lane: int, passes: tuple[int, ...], capacity: int, like: RowCache) -> Iterator[Slot]:
        """A slot for `lane` that nobody else has meanwhile: it has seen the first of `passes`, or all, or none.

        No more than `capacity` are kept. New ones get an empty cache of the size of `like`. The caller says what the slot has
        seen; when that fails, nothing is known of it.
        """
        with self._lock:
            if run != self._run:
                self._idle.clear()
                self._run = run
            self._idle = [slot for slot in self._idle if slot.cache.fits(like)]
            slot = next((slot for slot in self._idle if slot.lane == lane), None)
            if slot is None and self._idle and len(self._idle) + self._taken >= capacity:
                slot = self._idle[0]
            if slot is None:
                slot = Slot(copy.copy(like))
            else:
                self._idle.remove(slot)
            self._taken += 1
        if slot.lane != lane or slot.seen != passes[: len(slot.seen)]:
            slot.seen = ()
        slot.lane = -1
        try:
            yield slot
            slot.lane = lane
        finally:
            with self._lock:
                self._taken -= 1
                if run == self._run:
                    self._idle.append(slot)
                while self._idle and len(self._idle) + self._taken > capacity:
                    del self._idle[0]
