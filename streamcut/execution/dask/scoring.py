"""What workers do where the client takes all steps (climbing.py): read a part of a shard, and score its rows."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import Any

import distributed
import numpy as np

from streamcut.execution.dask.worker import Store, feed_of
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk, copied


@dataclass(frozen=True, slots=True)
class Job:
    """A pass (None: rows are only read), known by its `key`, and the shards that each worker keeps decoded, by address."""

    key: str
    work: Pass | None
    store: Store
    pins: dict[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Scored:
    """Row state with new values, the rows, and whether they were in memory."""

    rows: Rows
    chunk: Chunk
    pinned: bool


class _Thread(threading.local):
    """The buffers of a thread, for its feed."""

    feed: Feed | None = None
    buffers: Any = None


_own = _Thread()
_lock = threading.Lock()
_last: Job | None = None


def scored(key: str, shard: int, start: int, stop: int, rows: Rows, written: bytes) -> Scored:
    """Rows start:stop of the data, which lie in `shard`, scored by the job `written`, with their row state."""
    job = _job(key, written)
    feed = feed_of(job.store, job.pins.get(distributed.get_worker().address, frozenset()))
    if _own.feed is not feed:
        _own.feed, _own.buffers = feed, feed.buffers()
    chunk, pinned = feed.rows_of(shard, start, stop, _own.buffers, Traffic())
    if job.work is None:
        return Scored({}, copied(chunk), pinned)
    writable = {name: np.require(array, requirements="W") for name, array in rows.items()}
    return Scored(*job.work.score(writable, chunk), pinned)


def _job(key: str, written: bytes) -> Job:
    global _last
    with _lock:
        if _last is None or _last.key != key:
            _last = pickle.loads(written)
        return _last  # type: ignore[return-value]
