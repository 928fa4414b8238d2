"""Prefetching shards of a remote store: those that each reading thread has announced, within one memory budget.

A thread announces its next shards in order. As many are fetched as its share of the memory allows, and another one whenever one
is taken, so the connection is busy while shards are decoded and processed. Shards no longer expected are dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import accumulate


@dataclass(slots=True)
class _Coming:
    """The chunks of a shard not taken yet, by array, and the threads that expect them."""

    owner: threading.Thread
    chunks: dict[str, Future]


class ShardsAhead:
    """Safe to use from several threads.

    sizes  bytes of each shard
    begin  starts to fetch a shard; its chunks, by array
    most   bytes of all shards in flight, plus the largest shard
    """

    def __init__(self, sizes: Sequence[int], begin: Callable[[int], dict[str, Future]], most: int) -> None:
        self._sizes, self._begin, self._most = sizes, begin, most
        self._all = most + max(sizes, default=0)
        self._coming: dict[int, _Coming] = {}
        self._wanted: dict[threading.Thread, deque[int]] = {}
        self._lock = threading.Lock()

    @property
    def coming(self) -> set[int]:
        """The shards with chunks in flight, or received and not taken."""
        with self._lock:
            return set(self._coming)

    def expect(self, shards: Iterable[int]) -> None:
        """Announce that this thread reads `shards` next, in order; replaces what it announced before."""
        me, wanted = threading.current_thread(), list(shards)
        sums = accumulate(self._sizes[number] for number in wanted)
        soon = {number for number, total in zip(wanted, sums, strict=True) if total <= self._most or number == wanted[0]}
        with self._lock:
            for number, each in list(self._coming.items()):
                if (each.owner is me and number not in soon) or not each.owner.is_alive():
                    del self._coming[number]
                    for chunk in each.chunks.values():
                        chunk.cancel()
            self._wanted = {owner: left for owner, left in self._wanted.items() if owner.is_alive()}
            self._wanted[me] = deque(wanted)
            self._fill(me)

    def take(self, shard: int, name: str) -> Future | None:
        """The chunk of array `name`, now owned by the caller; None when it was not requested."""
        with self._lock:
            coming = self._coming.get(shard)
            if coming is None:
                return None
            chunk = coming.chunks.pop(name, None)
            if not coming.chunks:
                del self._coming[shard]
                self._fill(threading.current_thread())
            return chunk

    def _fill(self, me: threading.Thread) -> None:
        """Begin to fetch the shards of `me` within its share of the memory; one shard even if others exceed theirs."""
        wanted = self._wanted.get(me, deque())
        while wanted:
            size, others = self._sizes[wanted[0]], {each.owner for each in self._coming.values()} - {me}
            own = sum(self._sizes[number] for number, each in self._coming.items() if each.owner is me)
            held = sum(self._sizes[number] for number in self._coming)
            if wanted[0] not in self._coming:
                if held + size > self._all or (own and own + size > self._most // (1 + len(others))):
                    return
                self._coming[wanted[0]] = _Coming(me, self._begin(wanted[0]))
            wanted.popleft()
