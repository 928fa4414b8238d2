"""Ctrl-C, SIGTERM and SIGHUP all end work in an orderly way, and none is lost.

A signal normally raises an exception in the main thread. Python drops exceptions raised in a destructor or in a callback from C,
and compiling kernels is full of those: the signal would have no effect. So signals are recorded. A dropped one is sent again a
moment later; and long work runs `deferred`: signals raise nothing there, and the work polls for them.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from streamcut.io.outputs import release

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_MOMENT = 0.05  # seconds until a dropped signal is sent again

_received: type[KeyboardInterrupt] | None = None
_deferred = False


class Terminated(KeyboardInterrupt):
    """SIGTERM."""


class HungUp(KeyboardInterrupt):
    """SIGHUP: the terminal is gone."""


_RAISED = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated, signal.SIGHUP: HungUp}


def install() -> None:
    """Raise the exception in _RAISED in the main thread when a signal comes; an ignored SIGHUP (nohup) stays ignored."""
    global _received
    _received = None
    for number in _RAISED:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _receive)
    atexit.register(_ignore)
    sys.unraisablehook = _dropped


def raise_received() -> None:
    """Raise the exception of a signal that was swallowed or deferred."""
    global _received
    if _received is not None:
        swallowed, _received = _received, None
        raise swallowed


def leaving() -> bool:
    """Whether a signal has come that ends the command immediately, so that no thread need wait any more."""
    return _received is not None and not _deferred


def ended(code: int) -> None:
    """Work is done and output written: from now on a signal ends the process at once, with exit code `code`."""

    def leave(number: int, frame: FrameType | None) -> None:
        release()
        os._exit(code)

    for number in _RAISED:
        if signal.getsignal(number) == _receive:
            signal.signal(number, leave)


def _ignore() -> None:
    """Ignore signals until exit: the interpreter drops our handlers early, and a signal would kill it with its work done."""
    for number in _RAISED:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Inside, the first signal is only recorded, and the yielded function tells whether one came; the second ends the process.

    The caller may leave early, with or without KeyboardInterrupt; at the end it calls `raise_received`.
    """
    global _deferred
    _deferred = True
    try:
        yield lambda: _received is not None
    except KeyboardInterrupt:  # stopped before there was anything to keep
        _deferred = False
        raise_received()
        raise
    finally:
        _deferred = False


def _dropped(what: UnraisableHookArgs) -> None:
    """Handle an exception that Python cannot raise: a signal's is sent again, any other is shown as usual."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return
    later = threading.Timer(_MOMENT, _send_again)
    later.daemon = True
    later.start()


def _send_again() -> None:
    if _received is not None and not _deferred:
        number = next(number for number, raised in _RAISED.items() if raised is _received)
        signal.pthread_kill(threading.main_thread().ident or 0, number)  # ends what the main thread waits for


def _receive(number: int, frame: FrameType | None) -> None:
    global _received
    if _deferred and _received is not None:
        release()
        with suppress(OSError):
            os.write(2, b"streamcut: ended at once\n")
        os._exit(128 + number)
    _received = _RAISED[signal.Signals(number)]
    if not _deferred:
        raise _received
