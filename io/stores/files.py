"""The files of a store in a folder or in object storage, behind one interface: a file appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from streamcut.errors import NotFoundError
from streamcut.foundation.files import UNREACHABLE, disk_full, failpoint, locked, sync_directory, write_durably
from streamcut.foundation.opened import IrregularFileError, read_file
from streamcut.io.places.remote import (
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
    written,
)
from streamcut.io.stores.spec import LOCK

_REQUESTS = 16  # at once, to a server that lists nothing


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
                    _make(path.parent, changed)
                changed.add(path.parent)
            write_durably(path, *parts, prefix="store.put", sync_parent=False)
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
        found = {}
        for folder, _, names in os.walk(self.root):
            for path in (Path(folder, name) for name in names):
                found[path.relative_to(self.root).as_posix()] = path.lstat().st_size
        found.pop(LOCK, None)
        return found

    def sizes(self, wanted: Iterable[str]) -> dict[str, int]:
        """{name: bytes} of at least those of the files `wanted` that there are."""
        paths = ((name, Path(self.root, name)) for name in wanted)
        return {name: path.stat().st_size for name, path in paths if path.is_file()}

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
        requests = []
        for name, parts in contents:
            url = f"{self.root}/{name}"
            requests.append((url, begun(put, url, b"".join(parts))))
        for url, request in requests:
            written(url, request)

    def get(self, name: str) -> bytes | None:
        try:
            return answer(f"{self.root}/{name}", get, f"{self.root}/{name}")
        except MissingError:
            return None

    def names(self) -> dict[str, int]:
        return objects_below(self.root) if self._listed else {}

    def sizes(self, wanted: Iterable[str]) -> dict[str, int]:
        if self._listed:
            return self.names()
        with ThreadPoolExecutor(_REQUESTS) as pool:
            found = pool.map(lambda name: (name, size_of(f"{self.root}/{name}")), wanted)
            return {name: size for name, size in found if size is not None}

    def remove(self, name: str) -> None:
        remove_object(f"{self.root}/{name}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield


Files = Folder | Objects


def files_of(path: str | os.PathLike) -> Files:
    return Objects(str(path)) if is_url(path) else Folder(path)


def _make(folder: Path, changed: set[Path]) -> None:
    """Make a folder and those above it that there are not; those that get a new entry join `changed`."""
    if not folder.is_dir():
        _make(folder.parent, changed)
        folder.mkdir(exist_ok=True)
        changed.add(folder.parent)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
