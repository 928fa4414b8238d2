"""Input files that change while they are read: the result is neither the old content nor the new."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from streamcut.errors import BadInputError
from streamcut.foundation.units import format_bytes
from streamcut.io.text.inputs import STDIN

T = TypeVar("T")


class ChangedInputError(BadInputError):
    """An input has changed since reading began: nothing made of it can be used."""


class _State(NamedTuple):
    size: int
    mtime_ns: int
    inode: int
    device: int


class FileStates:
    """The current size, modification time and identity of the files `paths` and of all files below directories among them.

    Pipes, devices and URLs are left out: they are read once and cannot be compared.
    """

    def __init__(self, paths: Iterable[str | os.PathLike]) -> None:
        self._paths = [name for path in paths if "://" not in (name := os.fspath(path))]
        self._before = self._now()

    def _now(self) -> dict[str, _State | None]:
        return {name: _state(name) for path in self._paths for name in _files(path)}

    def expect(self) -> None:
        """Raise ChangedInputError, naming the file and the change, unless all files are unchanged."""
        now = self._now()
        for name in sorted({*self._before, *now}):
            what = _difference(self._before.get(name), now.get(name))
            if what is not None:
                raise ChangedInputError(f"{name}: {what} while it was read; convert it again once nothing writes to it")

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


def _state(path: str) -> _State | None:
    """None: it does not exist, or is not a regular file."""
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STDIN else os.stat(path)
    except (OSError, ValueError, AttributeError):  # standard input may be closed, or not a file
        return None
    return _State(found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev) if stat.S_ISREG(found.st_mode) else None


def _difference(before: _State | None, now: _State | None) -> str | None:
    if before == now:
        return None
    if now is None:
        return "was removed"
    if before is None:
        return "was added"
    if (before.inode, before.device) != (now.inode, now.device):
        return "was replaced by another file"
    if before.size != now.size:
        verb = "grew" if now.size > before.size else "shrank"
        return f"{verb} from {format_bytes(before.size)} to {format_bytes(now.size)}"
    return "was written to"
