"""Input files that change while they are read: the result is neither the old content nor the new."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from streamcut.errors import BadInputError
from streamcut.io.text.inputs import STDIN

T = TypeVar("T")


class ChangedInputError(BadInputError):
    """An input has changed since reading began: nothing made of it can be used."""


class FileStates:
    """The current size and modification time of the files `paths` and of all files below directories among them.

    Pipes, devices and URLs are left out: they are read once and cannot be compared.
    """

    def __init__(self, paths: Iterable[str | os.PathLike]) -> None:
        self._paths = [name for path in paths if "://" not in (name := os.fspath(path))]
        self._before = self._now()

    def _now(self) -> dict[str, tuple[int, int] | None]:
        return {name: _state(name) for path in self._paths for name in _files(path)}

    def expect(self) -> None:
        """Raise ChangedInputError, naming the file, unless all files are unchanged."""
        now = self._now()
        for name in sorted({*self._before, *now}):
            if self._before.get(name) != now.get(name):
                raise ChangedInputError(f"{name}: changed while it was read; convert it again once nothing writes to it")

    def watch(self, blocks: Iterator[T]) -> Iterator[T]:
        """`blocks`, which are read from these files; `expect` runs at their end, or before the error that ends them early."""
        try:
            yield from blocks
        except Exception:
            self.expect()  # a file cut short looks like a malformed one
            raise
        self.expect()


def _files(path: str) -> Iterator[str]:
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in names)
    else:
        yield path


def _state(path: str) -> tuple[int, int] | None:
    """None: it does not exist, or is not a regular file."""
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STDIN else os.stat(path)
    except (OSError, ValueError, AttributeError):  # standard input may be closed, or not a file
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
