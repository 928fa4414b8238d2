"""Ctrl-C in Python: the first ends long work in good order, with what it has; the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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
