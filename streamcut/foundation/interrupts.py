"""Stopping long work: Ctrl-C in Python, and waits (for servers) that would delay a stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

TURN = 0.2  # seconds
T = TypeVar("T")

_asked: list[Callable[[], bool]] = []


class GivenUp(KeyboardInterrupt):
    """A wait was abandoned because a stop was requested."""


@contextmanager
def waits_end_by(stop: Callable[[], bool]) -> Iterator[None]:
    """A context in which reads that wait for a server raise GivenUp once `stop` returns True, in any thread."""
    _asked.append(stop)
    try:
        yield
    finally:
        _asked.remove(stop)


def stop_wanted() -> bool:
    """Whether waits should end."""
    return any(stop() for stop in list(_asked))


def result_of(future: Future[T]) -> T:
    """The result of a future, awaited in short turns.

    Python handles signals in the main thread, when that runs. One that comes just before it begins to wait, or that the system
    gives to another thread, would be handled only at the end of the wait, which may be an hour's.
    """
    while wait([future], TURN).not_done:
        pass
    return future.result()


@contextmanager
def first_interrupt_asks() -> Iterator[Callable[[], bool]]:
    """A context in which the first SIGINT makes the function it yields return True; the second raises KeyboardInterrupt.

    With another handler installed, or in a thread without signals, nothing changes and it always returns False.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    asked = False

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    signal.signal(signal.SIGINT, receive)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
