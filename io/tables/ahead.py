"""Work done ahead in other threads, delivered in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def ahead(items: Iterable[T], work: Callable[[T], U], threads: int) -> Iterator[tuple[T, Callable[[], U]]]:
    """Each of `items` with a function that returns, or raises, the result of `work` on it.

    A single thread works on demand; several run up to `threads` + 1 items ahead.
    """
    if threads == 1:
        for item in items:
            yield item, partial(work, item)
        return
    working: deque[tuple[T, Future[U]]] = deque()
    pool = ThreadPoolExecutor(threads, "streamcut-rows")
    try:
        for item in items:
            working.append((item, pool.submit(work, item)))
            if len(working) > threads:
                done, future = working.popleft()
                yield done, future.result
        while working:
            done, future = working.popleft()
            yield done, future.result
    finally:
        pool.shutdown(cancel_futures=True)
