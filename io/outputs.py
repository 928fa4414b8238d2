"""Outputs of commands: models, reports, predictions, under any name a user gives.

A regular file appears once all of it is on the disk, replacing a file of its name. Symbolic links are followed and stay. An
output that is not a regular file (a device, a pipe, /dev/stdout) is opened and written through, since it cannot be replaced.
A URL names an object of an object store, which appears with its last byte.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.files import Sink, disk_full, locked, remove_abandoned, replacing, scratch_folder
from streamcut.foundation.systems import alive
from streamcut.io.remote import answer, begun, expect_writable, is_url, put, size_of

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)|/dev/std(out|err)")
_held: set[Path] = set()  # locks of this process


class AppearedError(UsageError):
    """A file with the output's name appeared while the output was made, and was not to be replaced."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Target of a write: `path` at the end of all symbolic links, its st_mode if it exists, or an open `descriptor`."""

    path: Path
    mode: int | None = None
    descriptor: int | None = None

    @property
    def through(self) -> bool:
        """Whether it is written through, because it cannot be replaced."""
        return self.descriptor is not None or (self.mode is not None and not stat.S_ISREG(self.mode))


def destination(path: str | os.PathLike) -> Destination:
    """The target of a write to `path`. Raises NotFoundError for a closed descriptor, OSError for a cycle of links."""
    name = os.fspath(path)
    if (match := _DESCRIPTOR.fullmatch(name)) is not None:
        number = int(match[1] or {"out": 1, "err": 2}[match[2]])
        try:
            return Destination(Path(name), os.fstat(number).st_mode, number)
        except OSError:
            raise NotFoundError(f"{name}: descriptor {number} is closed; give a file") from None
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = None
    through = mode is not None and not stat.S_ISREG(mode)  # a pipe has no path of its own
    return Destination(Path(name if through else os.path.realpath(name)), mode)


@contextmanager
def output(path: str | os.PathLike, *, prefix: str, size: int | None = None, replace: bool = True) -> Iterator[Sink]:
    """Receives the bytes for the output `path` (`size` of them in all, unless None).

    Unless `replace`, AppearedError if a file of this name has appeared meanwhile. Raises DiskFullError, NotFoundError.
    """
    if is_url(path):
        url, folder = os.fspath(path), scratch_folder(None)
        expect_writable(url)
        with disk_full(folder, size), tempfile.NamedTemporaryFile(prefix="streamcut-", dir=folder) as file:
            yield Sink(file.fileno(), "object")
            if not replace and size_of(url) is not None:
                raise _appeared(path)
            with open(file.name, "rb") as whole:
                answer(url, begun(put, url, whole), "written")
        return
    target = destination(path)
    with disk_full(path, size):
        if target.through:
            if target.descriptor is None:
                handle = os.open(target.path, os.O_WRONLY | os.O_NOCTTY)
            else:
                for stream in (sys.stdout, sys.stderr):  # flush their buffers first
                    if stream is not None:
                        stream.flush()
                handle = os.dup(target.descriptor)
            try:
                yield Sink(handle, prefix)
            finally:
                os.close(handle)
            return
        _remove_leftovers(target.path)
        mode = None if target.mode is None else stat.S_IMODE(target.mode)
        try:
            with replacing(target.path, prefix=prefix, mode=mode, replace=replace) as file:
                yield file
        except FileExistsError:
            raise _appeared(path) from None


def _appeared(path: str | os.PathLike) -> AppearedError:
    return AppearedError(f"{os.fspath(path)} appeared meanwhile; choose another name or replace it with --force")


def exists(path: str | os.PathLike) -> bool:
    """Whether an output of that name exists. Raises NotFoundError when a server cannot say."""
    return size_of(os.fspath(path)) is not None if is_url(path) else os.path.lexists(path)


def _remove_leftovers(path: Path) -> None:
    """Remove leftovers of processes killed while writing `path`: `.NAME.PID.tmp`, and `.NAME.lock` if it is empty."""
    ours = re.compile(re.escape(f".{path.name}.") + r"(\d+)\.tmp")
    for name in os.listdir(path.parent):
        match = ours.fullmatch(name)
        if match is not None and not alive(int(match[1])):
            remove_abandoned(path.with_name(name))
    lock = _lock_name(path)
    with suppress(OSError):
        if stat.S_ISREG(lock.lstat().st_mode) and lock.lstat().st_size == 0:
            remove_abandoned(lock)  # unless it is held


@contextmanager
def reserved(path: str | os.PathLike) -> Iterator[None]:
    """Lock the output `path` against other processes while it is made. Raises LockedError.

    Object stores have no locks, and what is written through needs none.
    """
    if is_url(path) or (target := destination(path)).through:
        yield
        return
    lock = _lock_name(target.path)
    with locked(lock, os.fspath(path), required=False, remove=True):
        _held.add(lock)
        try:
            yield
        finally:
            _held.discard(lock)


def release() -> None:
    """Remove the locks of this process, which is about to exit; they are empty files."""
    for lock in _held:
        with suppress(OSError):
            if lock.lstat().st_size == 0:
                lock.unlink()


def _lock_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")
