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
    """A pass (None: rows are only read), and the shards that each worker keeps decoded, by address."""

    run: str
    number: int
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
    """What a thread keeps from one task to the next: the buffers for a feed, the sums of a pass, which nobody reads."""

    feed: Feed | None = None
    buffers: Any = None
    job: Job | None = None
    sums: Any = None


_own = _Thread()
_lock = threading.Lock()
_last: Job | None = None


def scored(run: str, number: int, shard: int, start: int, stop: int, rows: Rows, written: bytes) -> Scored:
    """Rows start:stop of the data, which lie in `shard`, scored by the pass `written`, with their row state."""
    job = _job(run, number, written)
    feed = feed_of(job.store, job.pins.get(distributed.get_worker().address, frozenset()))
    if _own.feed is not feed:
        _own.feed, _own.buffers = feed, feed.buffers()
    chunk, pinned = feed.rows_of(shard, start, stop, _own.buffers, Traffic())
    if job.work is None:
        return Scored({}, copied(chunk), pinned)
    if _own.job is not job:
        _own.job, _own.sums = job, job.work.begin()
    writable = {name: np.require(array, requirements="W") for name, array in rows.items()}
    changed, lean = job.work.score(_own.sums, writable, chunk)
    return Scored(changed, lean, pinned)


def _job(run: str, number: int, written: bytes) -> Job:
    global _last
    with _lock:
        if _last is None or (_last.run, _last.number) != (run, number):
            _last = pickle.loads(written)
        return _last  # type: ignore[return-value]
