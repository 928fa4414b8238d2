"""Which files a command reads: paths, directories, globs, FIFOs, URLs and `-` for standard input."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.opened import opened_stream
from streamcut.io.places.remote import is_url, size_of

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of bytes. size is None for what can be read only once, front to back (`regular` False). A URL has no time."""

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
    and globs, as shells do. Raises NotFoundError for what does not exist, matches nothing or can't be read, and UsageError for a
    file that is named twice.
    """
    if not paths:
        raise UsageError("no input; name files, directories, globs, or - for standard input")
    inputs = [found for path in paths for found in _expand(os.fspath(path))]
    seen: set[str] = set()
    for found in inputs:
        key = found.name if found.name == STDIN or is_url(found.name) else os.path.realpath(found.name)
        if key in seen:
            raise UsageError(f"{found.name}: named twice; each input is read once")
        seen.add(key)
    return inputs


def _expand(path: str) -> list[Input]:
    if path == STDIN:
        return [Input(STDIN)]
    if is_url(path):
        from streamcut.io.sources.remote import remote_files

        return [_inspect_url(url) for url in remote_files(path)]
    if os.path.isdir(path):
        files = [str(p) for p in sorted(Path(path).rglob("*")) if not p.is_dir() and not _hidden(p.relative_to(path))]
        if not files:
            raise NotFoundError(f"{path}: the directory holds no files")
        return [_inspect(expect_file(file, path)) for file in files]
    if not os.path.lexists(path) and glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise NotFoundError(f"{path}: no file matches this pattern")
        nested = [_expand(match) if os.path.isdir(match) else [_inspect(expect_file(match, path))] for match in matches]
        return [found for group in nested for found in group]
    return [_inspect(path)]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _inspect_url(url: str) -> Input:
    size = size_of(url)
    if size is None:
        raise NotFoundError(f"{url}: no such file")
    return Input(url, size)


def expect_file(path: str, within: str) -> str:
    """`path`, for which the folder or glob `within` stands, among others. Raises NotFoundError for a pipe or a device."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise NotFoundError(f"{path}: not a file; {within} stands for files, and pipes are named one by one")
    return path


def _inspect(path: str) -> Input:
    try:
        status = os.stat(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise NotFoundError(f"{path}: cannot be read: permission denied")
    if stat.S_ISREG(status.st_mode):
        return Input(path, status.st_size, status.st_mtime_ns)
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
        return Input(path)
    raise NotFoundError(f"{path}: neither a file nor a pipe")
