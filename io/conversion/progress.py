"""Progress of a conversion."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from streamcut.io.sources.source import Source

EVERY = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Progress:
    """phase: "reading" or "writing" (of sorted rows); rows: done in it; share: of the phase done, None if unknown.

    bytes_read: of input files so far, None when they come through a pipe; seconds: since the start.
    """

    phase: str
    rows: int
    share: float | None
    bytes_read: int | None
    seconds: float


class Reporter:
    """Calls `listener` with Progress at most every EVERY seconds."""

    def __init__(self, listener: Callable[[Progress], None] | None, source: Source, began: float) -> None:
        self._listener, self._source, self._began = listener, source, began
        self._sizes = [size for _, size, _ in source.identity["inputs"]]
        self._last = began

    def reading(self, rows: int, place: dict) -> None:
        if self._listener is None or not self._due():
            return
        total_rows = getattr(self._source, "total_rows", None)
        done, share = None, None
        if total_rows is not None:
            share = rows / max(1, total_rows)
            done = None if None in self._sizes else int(share * sum(self._sizes))
        elif None not in self._sizes:
            done = sum(self._sizes[: place["file"]]) + place["taken"]
            share = done / max(1, sum(self._sizes))
        self._listener(Progress("reading", rows, share, done, time.monotonic() - self._began))

    def writing(self, rows: int, total: int) -> None:
        if self._listener is not None and self._due():
            self._listener(Progress("writing", rows, rows / max(1, total), None, time.monotonic() - self._began))

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._last < EVERY:
            return False
        self._last = now
        return True
