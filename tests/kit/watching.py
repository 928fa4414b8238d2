"""Which files of a folder are opened, by whatever library: the kernel says so (inotify)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPENED = 0x20


@contextmanager
def opened_in(folder: Path) -> Iterator[list[str]]:
    """The names of the files of `folder` that were opened within the context; complete when it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    assert handle >= 0
    assert libc.inotify_add_watch(handle, os.fsencode(folder), _OPENED) >= 0
    names: list[str] = []
    try:
        yield names
        names += _events(handle)
    finally:
        os.close(handle)


def _events(handle: int) -> Iterator[str]:
    try:
        while content := os.read(handle, 1 << 16):
            while content:
                size = int.from_bytes(content[12:16], "little")
                if name := content[16 : 16 + size].rstrip(b"\0"):
                    yield os.fsdecode(name)
                content = content[16 + size :]
    except BlockingIOError:
        return
