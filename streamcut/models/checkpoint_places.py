"""Where checkpoints are kept: a folder on disk, or object storage behind a URL. Either holds two generations, written in turn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from streamcut.foundation.files import locked, scratch_folder, sync_directory, write_stream_durably
from streamcut.io.places.remote import expect_bucket, fetch_object, is_url, objects_below, remove_object, size_of, write_parts

NAMES = ("even.checkpoint", "odd.checkpoint")
ALONG = ("C=", "l1=", "class=")  # prefixes of the folders of a path's steps, and of classes trained one by one


class CheckpointPlace(Protocol):
    """A place for the checkpoints of one run; `name` is what messages call it."""

    name: str

    def enter(self, stack: ExitStack) -> None:
        """Create the place and, where possible, lock it until the stack closes. Raises LockedError."""

    def found(self) -> Iterator[tuple[str, Path]]:
        """(name for messages, local file) of each generation present."""

    def write(self, generation: int, parts: Iterable[bytes | memoryview], size: int) -> None:
        """Replace the older generation. Raises DiskFullError, OSError."""

    def remove(self) -> None:
        """Remove the checkpoints, and the place if nothing else is in it."""


def checkpoint_place(directory: str | os.PathLike) -> CheckpointPlace:
    return ObjectPlace(str(directory)) if is_url(directory) else FolderPlace(Path(directory))


def below(directory: str, name: str) -> str:
    """The place `name` in `directory`, created if it is a folder."""
    if is_url(directory):
        return f"{directory.rstrip('/')}/{name}"
    Path(directory).mkdir(exist_ok=True)
    return os.fspath(Path(directory) / name)


def remove_checkpoints(directory: str, *, nested: bool = False) -> None:
    """Remove the checkpoints of a finished run, those of each step of a path, and folders left empty.

    nested   also those of runs in subfolders
    """
    if is_url(directory):
        root = directory.rstrip("/")
        found = {f"{root}/{name}".rpartition("/") for name in objects_below(root)}
        kept = {place for place, _, name in found if name in NAMES and (nested or _of_steps(place[len(root) + 1 :] or "."))}
        for url in sorted(kept) or [root]:
            ObjectPlace(url).remove()
        return
    folder = Path(directory)
    locked = {folder, *(path.parent for path in folder.glob("**/lock"))}
    for place in sorted(locked, reverse=True):  # the deepest first
        if nested or _of_steps(place.relative_to(folder).as_posix()):
            FolderPlace(place).remove()
    for place in [*(folder.glob("*") if nested else ()), folder]:
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def _of_steps(place: str) -> bool:
    """Whether a place, relative to that of the run, is its own (".") or that of a step, or of a class in one."""
    return place == "." or all(name.startswith(ALONG) for name in place.split("/"))


class FolderPlace:
    """A folder, locked while in use."""

    def __init__(self, folder: Path) -> None:
        self.name, self._folder = str(folder), folder

    def enter(self, stack: ExitStack) -> None:
        self._folder.mkdir(exist_ok=True)
        sync_directory(self._folder.parent)  # else a power failure could lose the folder with its synced files
        stack.enter_context(locked(self._folder / "lock", self.name))
        for leftover in self._folder.glob(".*.checkpoint.*.tmp"):
            leftover.unlink()

    def found(self) -> Iterator[tuple[str, Path]]:
        yield from ((str(path), path) for name in NAMES if (path := self._folder / name).exists())

    def write(self, generation: int, parts: Iterable[bytes | memoryview], size: int) -> None:
        write_stream_durably(self._folder / NAMES[generation % 2], parts, size, prefix="ckpt")

    def remove(self) -> None:
        with locked(self._folder / "lock", self.name, remove=True):
            for name in NAMES:
                (self._folder / name).unlink(missing_ok=True)
        if not any(self._folder.iterdir()):
            self._folder.rmdir()


class ObjectPlace:
    """Object storage: a generation is one object, which appears atomically. No locks: the user ensures one run per URL."""

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self._local: Path | None = None

    def enter(self, stack: ExitStack) -> None:
        expect_bucket(self.name, "--checkpoint: ")
        self._local = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(None))))

    def found(self) -> Iterator[tuple[str, Path]]:
        assert self._local is not None, "enter comes first"
        for name in NAMES:
            if size_of(url := f"{self.name}/{name}") is not None:
                fetch_object(url, self._local / name)
                yield url, self._local / name

    def write(self, generation: int, parts: Iterable[bytes | memoryview], size: int) -> None:
        write_parts(f"{self.name}/{NAMES[generation % 2]}", parts, size=size)

    def remove(self) -> None:
        for name in NAMES:
            remove_object(f"{self.name}/{name}")
