"""Finds the files a command reads: paths, directories, globs, FIFOs, URLs and `-` for standard input."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import BinaryIO, cast

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.opened import opened_stream
from streamcut.io.places.remote import OBJECT_STORES, is_url, objects_below, size_of
from streamcut.io.stores.spec import MANIFEST

STDIN = "-"
NOT_UTF8 = "not UTF-8; convert the file, with iconv"
_UTF16 = "text in UTF-16; convert it with: iconv -f UTF-16 -t UTF-8 OLD > NEW"
_BINARY = {b"\xff\xfe": _UTF16, b"\xfe\xff": _UTF16, b"PK\x03\x04": "a zip archive or an .npz file", b"PAR1": "a Parquet file",
           b"ARROW1": "an Arrow file", b"\x93NUMPY": "a NumPy array, whose name must end in .npy", b"\x89HDF": "an HDF5 file",
           b"\x80\x04": "a pickle", b"\x80\x05": "a pickle"}  # fmt: skip


def not_text(head: bytes) -> str | None:
    """What a file is that begins with `head` and is not text in UTF-8; None: it may be."""
    known = next((what for mark, what in _BINARY.items() if head.startswith(mark)), None)
    return known or ("no text: it holds zero bytes" if b"\0" in head else None)


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of bytes. size is None if it can be read only once, front to back (`regular` False). A URL has no time."""

    name: str
    size: int | None = None
    mtime_ns: int | None = None

    @property
    def regular(self) -> bool:
        return self.size is not None

    def open(self) -> BinaryIO:
        """The bytes, unbuffered. Raises NotFoundError."""
        if self.name == STDIN:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
        if is_url(self.name):
            from streamcut.io.text.remote_bytes import RemoteBytes

            return cast(BinaryIO, RemoteBytes(self.name))
        try:
            return cast(BinaryIO, opened_stream(self.name))
        except OSError as error:
            raise NotFoundError(f"{self.name}: cannot be read: {error.strerror}") from error


def find_inputs(paths: Sequence[str | os.PathLike]) -> list[Input]:
    """The inputs that `paths` name, in the order given; files of directories (recursively) and of globs sorted by path.

    A path that exists is taken literally even if it looks like a glob. Names that begin with a dot are left out of directories
    and globs, as shells do. Raises NotFoundError for a path that does not exist, matches nothing or can't be read, and
    UsageError for a file named twice.
    """
    if not paths:
        raise UsageError("no input; name files, directories, globs, or - for standard input")
    inputs = [found for path in paths for found in _expand(os.fspath(path))]
    expect_once([found.name for found in inputs])
    return inputs


def expect_once(names: Sequence[str]) -> None:
    """Raise UsageError for a file that is named twice; two hard links are two files."""
    places = Counter(name if name == STDIN or is_url(name) else os.path.realpath(name) for name in names)
    if twice := [place for place, count in places.items() if count > 1]:
        raise UsageError(f"{twice[0]}: named twice; each input is read once")


def files_below(folder: str) -> list[str]:
    """The paths, relative to a folder, of all files below it, sorted, without hidden (dot) files and folders."""
    found: list[list[str]] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inner = os.path.relpath(place, folder)
        parts = [] if inner == os.curdir else inner.split(os.sep)
        found += [[*parts, name] for name in names if not name.startswith(".")]
    return [os.sep.join(parts) for parts in sorted(found)]


def _expand(path: str) -> list[Input]:
    if path == STDIN:
        return [Input(STDIN)]
    if is_url(path):
        return [_inspect_url(url) for url in remote_files(path)]
    if os.path.isdir(path):
        files, folder = files_below(path), str(Path(path))
        if not files:
            raise NotFoundError(f"{path}: the directory holds no files")
        return [_inspect(name if folder == os.curdir else os.path.join(folder, name), path) for name in files]
    if not os.path.lexists(path) and glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise NotFoundError(f"{path}: no file matches this pattern")
        nested = [_expand(match) if os.path.isdir(match) else [_inspect(match, path)] for match in matches]
        return [found for group in nested for found in group]
    return [_inspect(path)]


def _inspect_url(url: str) -> Input:
    size = size_of(url)
    if size is None:
        raise NotFoundError(f"{url}: no such file")
    return Input(url, size)


def expect_file(path: str, within: str) -> str:
    """`path`, found in the folder or glob `within`. Raises NotFoundError for a pipe or a device."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise _no_file(path, within)
    return path


def _inspect(path: str, within: str | None = None) -> Input:
    """The Input at `path`, found in the folder or glob `within` if given."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from error
    regular = stat.S_ISREG(status.st_mode)
    if within is not None and not regular:
        raise _no_file(path, within)
    if not os.access(path, os.R_OK):
        raise NotFoundError(f"{path}: cannot be read: permission denied")
    if regular:
        return Input(path, status.st_size, status.st_mtime_ns)
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
        return Input(path)
    raise NotFoundError(f"{path}: neither a file nor a pipe")


def _no_file(path: str, within: str) -> NotFoundError:
    return NotFoundError(f"{path}: not a file; {within} matches only files; name pipes one by one")


def remote_files(url: str) -> list[str]:
    """The URLs that a glob matches, or in a folder; `url` itself when it is a file, a store, or unknown.

    Folders are listed without hidden files and marker files of writers (`_SUCCESS`). Raises NotFoundError when a glob
    matches nothing, or a folder holds nothing.
    """
    if url.partition("://")[0] not in OBJECT_STORES:
        return [url]
    if glob.has_magic(url):
        folder = re.split(r"[*?[]", url)[0].rpartition("/")[0]
        matches = re.compile(translate(url[len(folder) + 1 :]).replace(".*", "[^/]*")).match
        found = [name for name in objects_below(folder) if matches(name)]
        if not found:
            raise NotFoundError(f"{url}: no file matches this pattern")
    elif size_of(url) is not None or not (below := objects_below(url)) or MANIFEST in below:
        return [url]
    else:
        folder = url.rstrip("/")
        found = [name for name in below if not any(part.startswith((".", "_")) for part in name.split("/"))]
        if not found:
            raise NotFoundError(f"{url}: the folder holds no files")
    return [f"{folder}/{name}" for name in sorted(found)]
