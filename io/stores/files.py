"""The files of a store in a folder or in object storage, behind one interface: a file appears whole or not at all.

What a store under construction consists of, the same on a disk and in object storage:

NAME/journal/000000   the options of what was begun (JSON)
NAME/shards/…         the files of the shards
NAME/journal/000001   an entry once all files of a shard are there: its record, and where to read on
NAME/manifest.json    last; with it NAME is a store, and the journal is removed
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from streamcut.errors import NotFoundError, StreamcutError, UsageError
from streamcut.foundation.files import UNREACHABLE, disk_full, failpoint, locked, sync_directory, write_durably
from streamcut.foundation.opened import IrregularFileError, read_file
from streamcut.io.manifest import guarded_files, parse_manifest
from streamcut.io.remote import (
    OBJECT_STORES,
    MissingError,
    answer,
    begun,
    get,
    is_url,
    objects_below,
    put,
    remove_object,
    size_of,
)
from streamcut.io.stores.spec import EXTRAS, JOURNAL, LOCK, MANIFEST, METADATA, SCRATCH, SHARDS

_IN_FLIGHT = 64  # uploads at once
_SHOWN = 3


class Folder:
    """A folder on a disk; `root` is its path without symbolic links."""

    def __init__(self, root: str | os.PathLike) -> None:
        self.root = os.path.realpath(root)

    def put(self, contents: Iterable[tuple[str, tuple[bytes, ...]]]) -> None:
        """Write files given as (name, parts), each replacing one of that name; all are durable at the end.

        Raises DiskFullError. Failpoints: store.put_tmp, store.put_fsync, store.put_rename.
        """
        changed: set[Path] = set()
        for name, parts in contents:
            path = Path(self.root, name)
            if path.parent not in changed:
                with disk_full(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                changed |= {folder for folder in path.parents if folder.is_relative_to(self.root)}
            write_durably(path, parts, sum(map(len, parts)), prefix="store.put", sync_parent=False)
        for folder in changed:
            sync_directory(folder)

    def get(self, name: str) -> bytes | None:
        """The content of a file; None when there is none. Raises NotFoundError for a pipe or a device."""
        try:
            return read_file(Path(self.root, name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except IrregularFileError as error:
            raise NotFoundError(f"{self.root}/{name}: {error.strerror}; move it away, or choose another name") from None

    def names(self) -> dict[str, int]:
        """{name: bytes} of all files but the lock."""
        sizes = {}
        for folder, _, names in os.walk(self.root):
            for path in (Path(folder, name) for name in names):
                sizes[path.relative_to(self.root).as_posix()] = path.lstat().st_size
        sizes.pop(LOCK, None)
        return sizes

    def size(self, name: str) -> int | None:
        """Bytes of a file; None when there is none."""
        path = Path(self.root, name)
        return path.stat().st_size if path.is_file() else None

    def remove(self, name: str) -> None:
        """Remove a file if there is one, and the folders that it leaves empty."""
        path = Path(self.root, name)
        path.unlink(missing_ok=True)
        with suppress(OSError):
            while (path := path.parent) != Path(self.root):
                path.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder and keep other processes from writing to it; at the end it is removed if it is empty.

        Raises LockedError, NotFoundError when the folder cannot be made, DiskFullError.
        """
        root = Path(self.root)
        with ExitStack() as stack:
            try:
                with disk_full(root):
                    root.mkdir(exist_ok=True)
                    stack.callback(_remove_if_empty, root)
                    sync_directory(root.parent)
                    stack.enter_context(locked(root / LOCK, self.root, remove=True))
                    failpoint("convert.open")
            except OSError as error:
                if error.errno not in UNREACHABLE:
                    raise
                raise NotFoundError(f"{root}: cannot be made ({error.strerror})") from error
            yield


class Objects:
    """Object storage below the URL `root`, which has no locks; or a web server, which lists nothing and is only read."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._listed = root.partition("://")[0] in OBJECT_STORES

    def put(self, contents: Iterable[tuple[str, tuple[bytes, ...]]]) -> None:
        requests: deque[tuple[str, Future[None]]] = deque()
        for name, parts in contents:
            if len(requests) == _IN_FLIGHT:
                answer(*requests.popleft(), "written")
            url = f"{self.root}/{name}"
            requests.append((url, begun(put, url, b"".join(parts))))
        while requests:
            answer(*requests.popleft(), "written")

    def get(self, name: str) -> bytes | None:
        try:
            return answer(f"{self.root}/{name}", begun(get, f"{self.root}/{name}")).to_bytes()
        except MissingError:
            return None

    def names(self) -> dict[str, int]:
        return objects_below(self.root) if self._listed else {}

    def size(self, name: str) -> int | None:
        return size_of(f"{self.root}/{name}")

    def remove(self, name: str) -> None:
        remove_object(f"{self.root}/{name}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield


Files = Folder | Objects


def files_of(path: str | os.PathLike) -> Files:
    return Objects(str(path)) if is_url(path) else Folder(path)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def entry(number: int) -> str:
    """The name of an entry of the journal; number 0 records the options."""
    return f"{JOURNAL}/{number:06d}"


def is_store(path: str | os.PathLike) -> bool:
    """Whether there is a finished store at `path`."""
    return files_of(path).get(MANIFEST) is not None


def unfinished(path: str | os.PathLike) -> dict:
    """The options of the unfinished store at `path`; empty when there is none."""
    files = files_of(path)
    records = [] if files.get(MANIFEST) is not None else entries(files, last=0)
    return records[0]["options"] if records else {}


def entries(files: Files, last: int | None = None) -> list[dict]:
    """The journal, up to entry number `last` or the first that is missing or damaged."""
    records: list[dict] = []
    with suppress(ValueError):
        while last is None or len(records) <= last:
            records.append(json.loads(files.get(entry(len(records))) or b""))
    return records


def expect_free(path: str | os.PathLike, force: bool) -> None:
    """Raise UsageError when a store may not be written to `path`: one exists (without `force`), or files are not streamcut's."""
    files = files_of(path)
    if isinstance(files, Folder) and os.path.lexists(files.root) and not os.path.isdir(files.root):
        remedy = "is not a streamcut store, so --force does not touch it; remove it yourself"
        raise UsageError(f"{path}: exists{f' and {remedy}' if force else '; choose another name, or replace it with --force'}")
    names = files.names()
    if MANIFEST in names and not force:
        raise UsageError(f"{path}: exists; choose another name, or replace it with --force")
    ours, begun_here = {SCRATCH}, entry(0) in names  # the first part of a name, whatever follows
    listed = set[str]()
    if MANIFEST in names:
        try:
            listed = {MANIFEST, *guarded_files(parse_manifest(files.get(MANIFEST) or b"", MANIFEST))}
        except StreamcutError:
            raise UsageError(
                f"{files.root}: its {MANIFEST} cannot be read by this version, so --force does not touch it; remove it yourself"
            ) from None
        ours.add(JOURNAL)
    else:  # one that was begun, or of which not even the first entry is there
        ours |= {METADATA, *EXTRAS, SHARDS, JOURNAL} if begun_here else set()
        listed = {name for name in names if name.endswith(".tmp") and (begun_here or name.startswith(f"{JOURNAL}/."))}
    if foreign := sorted(name for name in names if name not in listed and name.split("/")[0] not in ours):
        shown = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
        raise UsageError(f"{path} holds files not written by streamcut ({shown}); move that away or choose another name")


def settle(path: str | os.PathLike) -> None:
    """Remove the journal and the lock of a finished store, left by a process that ended just then. Raises LockedError."""
    files = files_of(path)
    if any(files.get(name) is not None for name in (entry(0), LOCK)):
        with files.locked():
            remove(files, {name for name in files.names() if name.startswith(f"{JOURNAL}/")})


def discard(path: str | os.PathLike) -> None:
    """Remove the unfinished store at `path`, if there is one. Raises LockedError while a process writes it."""
    if unfinished(path):
        expect_free(path, force=False)
        files = files_of(path)
        with files.locked():
            remove(files, files.names())


def remove(files: Files, names: Iterable[str]) -> None:
    """Remove the files `names` of a store, the first entry of the journal last: it is what shows that the rest is ours."""
    for name in sorted(names, key=lambda name: (name == entry(0), name)):
        files.remove(name)
