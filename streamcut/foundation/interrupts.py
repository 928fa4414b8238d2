"""Long work that is asked to stop: Ctrl-C in Python, and waits (for servers) that would keep a stop waiting, too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_asked: list[Callable[[], bool]] = []


class GivenUp(KeyboardInterrupt):
    """What a thread waited for was given up, because a stop was asked for."""


@contextmanager
def waits_end_by(stop: Callable[[], bool]) -> Iterator[None]:
    """Within, what waits for a server in order to read gives up (GivenUp) once `stop` says so, whatever its thread."""
    _asked.append(stop)
    try:
        yield
    finally:
        _asked.remove(stop)


def stop_wanted() -> bool:
    """Whether somebody wants waits to end."""
    return any(stop() for stop in list(_asked))


@contextmanager
def first_interrupt_asks() -> Iterator[Callable[[], bool]]:
    """Within, the first SIGINT only makes what this gives say True; the second raises KeyboardInterrupt.

    Handlers of others, and threads that get no signals, are left alone: there it always says False.
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
