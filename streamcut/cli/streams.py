"""The three standard streams, in whatever state a shell, a service or a terminal that is gone leaves them.

A closed one would be None in Python, and its number would go to the next file that is opened: messages would end in a model.
"""

from __future__ import annotations

import io
import os
import sys


def repair() -> None:
    """Let all three be open: a closed stdout as a pipe that nobody reads. What stderr cannot take is dropped; work goes on."""
    for number in (0, 2):
        if _is_closed(number):
            _put(os.open(os.devnull, os.O_RDWR), number)
    if _is_closed(1):
        unread, end = os.pipe()
        os.close(unread)
        _put(end, 1)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None or sys.stderr is sys.__stderr__:  # not what a test or a notebook put there
        sys.stderr = io.TextIOWrapper(_Lossy(2, "w", closefd=False), errors="backslashreplace", line_buffering=True)  # type: ignore


class _Lossy(io.FileIO):
    """Drops what cannot be written: to a full disk, to a terminal that was closed."""

    def write(self, content) -> int:
        try:
            return super().write(content) or len(content)
        except OSError:
            return len(content)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _put(handle: int, number: int) -> None:
    """Give what is open as `handle` this `number`, which children inherit as they do a standard stream."""
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    else:
        os.set_inheritable(number, True)
