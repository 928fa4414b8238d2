"""Ctrl-C and SIGTERM end work in the same orderly way, and neither gets lost."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

_received: type[KeyboardInterrupt] | None = None


class Terminated(KeyboardInterrupt):
    """SIGTERM."""


def install() -> None:
    """Raise KeyboardInterrupt or Terminated where the main thread is when the signal comes."""
    signal.signal(signal.SIGINT, _receive)
    signal.signal(signal.SIGTERM, _receive)


def raise_received() -> None:
    """Raise what came and was swallowed: Python only prints an exception that is raised while it runs a destructor."""
    global _received
    if _received is not None:
        swallowed, _received = _received, None
        raise swallowed


def _receive(number: int, frame: FrameType | None) -> NoReturn:
    global _received
    _received = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    raise _received
