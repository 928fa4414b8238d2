"""Which shards of a store afar are on their way: for each reading thread those that it said it would read, within one memory.

A thread names the shards that come next, in its order. As many are fetched as its part of the memory allows, and another one as
soon as one was taken, so the line is busy while shards are decoded and computed. What a thread does not want any more makes room.
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
    """The chunks of a shard that nobody has taken yet, by array, and who wants them."""

    owner: threading.Thread
    chunks: dict[str, Future]


class ShardsAhead:
    """Safe to use from several threads.

    sizes  bytes of each shard
    begin  fetches a shard: its chunks, by array
    most   bytes of all shards on their way, and of the largest one more
    """

    def __init__(self, sizes: Sequence[int], begin: Callable[[int], dict[str, Future]], most: int) -> None:
        self._sizes, self._begin, self._most = sizes, begin, most
        self._all = most + max(sizes, default=0)
        self._coming: dict[int, _Coming] = {}
        self._wanted: dict[threading.Thread, deque[int]] = {}
        self._lock = threading.Lock()

    @property
    def coming(self) -> set[int]:
        """The shards of which chunks are on their way, or here and not taken."""
        with self._lock:
            return set(self._coming)

    def expect(self, shards: Iterable[int]) -> None:
        """This thread will read `shards` next, one after the other, and nothing else that it expected before."""
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
        """The chunk of array `name`, which is the caller's now; None when it is not on its way."""
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
        """Begin to fetch what `me` wants and has memory for: its part of all, one shard even if others have more than theirs."""
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
