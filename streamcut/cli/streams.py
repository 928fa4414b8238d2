"""Repairs the three standard streams, which a shell, a service or a closed terminal may leave in any state.

A closed one would be None in Python, and its descriptor would go to the next file opened: messages would end up in a model.
"""

from __future__ import annotations

import io
import os
import sys


def repair() -> None:
    """Open all three: a closed stdout becomes a pipe without a reader. What stderr cannot take is dropped; work continues."""
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
    if sys.stderr is None or sys.stderr is sys.__stderr__:  # not replaced by a test or a notebook
        sys.stderr = io.TextIOWrapper(_Lossy(2, "w", closefd=False), errors="backslashreplace", line_buffering=True)  # type: ignore


class _Lossy(io.FileIO):
    """Drops what cannot be written, to a full disk or a closed terminal."""

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
    """Move `handle` to the descriptor `number`, which children inherit like a standard stream."""
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    else:
        os.set_inheritable(number, True)
