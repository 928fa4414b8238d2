"""What a disk may hold after the power went, by what POSIX promises and no more.

`Recorder` looks at a folder before every fsync, rename and removal of this process. Whatever was not made durable by then may be
lost: the content of a file since its last fsync, and names since the last fsync of their directory. `left_over` lays out one
such disk for one of these moments.
"""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass
from pathlib import Path

Names = dict[int, dict[str, int]]  # directory → name → file or directory, all by inode number
Contents = dict[int, bytes]

WAYS = ("nothing", "names", "half", "anything")  # what survives besides what is durable


@dataclass(frozen=True)
class Moment:
    """The folder as programs saw it, and what of it was durable."""

    root: int
    before: str
    names: Names
    contents: Contents
    durable_names: Names
    durable_contents: Contents


class Recorder:
    """Use as a context around the writer; `moments` has the folder's state before each call of _CALLS, and at the end."""

    _CALLS = ("fsync", "replace", "rename", "unlink", "rmdir")

    def __init__(self, root: Path) -> None:
        self.moments: list[Moment] = []
        self._root = root
        self._held: dict[int, int] = {}  # open files: no inode number is used twice
        self._names: Names = {}
        self._contents: Contents = {}
        self._lock = threading.RLock()
        self._real = {name: getattr(os, name) for name in self._CALLS}

    def __enter__(self) -> Recorder:
        self._names, self._contents = self._look()  # what is there at first is durable
        for name in self._CALLS:
            setattr(os, name, self._watched(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, call in self._real.items():
            setattr(os, name, call)
        self._note("the end")
        for handle in self._held.values():
            os.close(handle)

    def _watched(self, name: str):
        def call(*arguments, **options):
            with self._lock:
                self._note(f"{name} {arguments}")
                result = self._real[name](*arguments, **options)
                if name == "fsync":
                    self._settle(arguments[0])
                return result

        return call

    def _note(self, before: str) -> None:
        names, contents = self._look()
        durable = {inode: dict(entries) for inode, entries in self._names.items()}
        self.moments.append(Moment(self._root.stat().st_ino, before, names, contents, durable, dict(self._contents)))

    def _settle(self, handle: int) -> None:
        """An fsync was done."""
        inode = os.fstat(handle).st_ino
        names, contents = self._look()
        if inode in names:
            before, now = set(self._names.get(inode, {}).values()), set(names[inode].values())
            self._names[inode] = names[inode]
            for other in self._names.keys() | names.keys() - {inode}:  # a rename between directories is done in both
                live, durable = names.get(other, {}), self._names.setdefault(other, {})
                came = {name: child for name, child in live.items() if child in before - now}
                went = {name for name, child in durable.items() if child in now and live.get(name) != child}
                self._names[other] = {name: child for name, child in {**durable, **came}.items() if name not in went}
        elif inode in contents:
            self._contents[inode] = contents[inode]

    def _look(self) -> tuple[Names, Contents]:
        names: Names = {}
        contents: Contents = {}
        folders = [self._root]
        while folders:
            folder = folders.pop()
            entries = names[folder.stat().st_ino] = {}
            for entry in os.scandir(folder):
                inode = entries[entry.name] = entry.inode()
                if inode not in self._held:
                    self._held[inode] = os.open(entry.path, os.O_RDONLY)
                if entry.is_dir():
                    folders.append(Path(entry.path))
                else:
                    contents[inode] = Path(entry.path).read_bytes()
        return names, contents


def left_over(moment: Moment, target: Path, way: str, seed: int = 0) -> None:
    """Lay out in the new folder `target` what may be left when the power goes at `moment`, by one of WAYS:

    nothing   only what is durable
    names     all names, and for content that isn't durable zeros of the same length
    half      all names, and half of such content; what was durable before a file grew stays
    anything  names of any directories, any part of such content. A rename between two directories happens in both or neither, as
              in file systems with a journal: so all directories that are renamed from or to are of one mind.
    """
    chance = random.Random(seed)
    outside = chance.random() < 0.5  # the mind of directories that hold directories

    def entries(inode: int) -> dict[str, int]:
        live, durable = moment.names.get(inode), moment.durable_names.get(inode, {})
        if live is None or way == "nothing":
            return durable
        if way == "anything":
            holds_directories = any(child in moment.names for child in {*live.values(), *durable.values()})
            return live if (outside if holds_directories else chance.random() < 0.5) else durable
        return live

    def content(inode: int) -> bytes:
        durable = moment.durable_contents.get(inode, b"")
        live = moment.contents.get(inode, durable)
        if live == durable or way == "nothing":
            return durable
        if way == "names":
            return durable + bytes(max(0, len(live) - len(durable)))
        if way == "half":
            kept = len(durable) if live.startswith(durable) else 0
            return live[: kept + (len(live) - kept) // 2]
        return live[: chance.randrange(len(live) + 1)]

    def lay(inode: int, path: Path) -> None:
        if inode in moment.names or inode in moment.durable_names:
            path.mkdir()
            for name, child in entries(inode).items():
                lay(child, path / name)
        else:
            path.write_bytes(content(inode))

    lay(moment.root, target)
