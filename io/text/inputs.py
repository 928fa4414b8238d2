"""The files a command reads: paths, directories, globs, FIFOs, URLs and `-` for standard input, and their bytes.

Compression is recognised by the first bytes, not by name. Objects behind URLs are read at any position, or front to back with
several pieces on their way.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING

from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.foundation.opened import opened_stream
from streamcut.io.remote import AHEAD, OBJECT_STORES, RemoteFile, is_url, objects_below, size_of
from streamcut.io.stores.spec import MANIFEST

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Bytes = io.RawIOBase | io.BufferedIOBase  # a stream of them
STDIN = "-"
NOT_UTF8 = "not UTF-8; convert the file, with iconv"
_UTF16 = "text in UTF-16; convert it with: iconv -f UTF-16 -t UTF-8 OLD > NEW"
_UTF32 = _UTF16.replace("16", "32")
_HTML = "an HTML page, no data; was it downloaded where one has to log in?"
_BINARY = {b"\xff\xfe\0\0": _UTF32, b"\0\0\xfe\xff": _UTF32, b"<!DOCTYPE": _HTML, b"<!doctype": _HTML, b"<html": _HTML,
           b"\xff\xfe": _UTF16, b"\xfe\xff": _UTF16, b"PK\x03\x04": "a zip archive or an .npz file", b"PAR1": "a Parquet file",
           b"ARROW1": "an Arrow file", b"\x93NUMPY": "a NumPy array, whose name must end in .npy", b"\x89HDF": "an HDF5 file",
           b"\x80\x04": "a pickle", b"\x80\x05": "a pickle"}  # fmt: skip


def not_text(head: bytes) -> str | None:
    """What a file is that begins with `head` and is not text in UTF-8; None: it may be."""
    kind = next((what for mark, what in _BINARY.items() if head.startswith(mark)), None)
    return kind or ("no text: it holds zero bytes" if b"\0" in head else None)


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of bytes. size is None if it can be read only once, front to back (`regular` False). A URL has no time."""

    name: str
    size: int | None = None
    mtime_ns: int | None = None

    @property
    def regular(self) -> bool:
        return self.size is not None

    def open(self) -> Bytes:
        """The bytes, unbuffered. Raises NotFoundError."""
        if self.name == STDIN:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
        if is_url(self.name):
            return RemoteFile(self.name, AHEAD)
        try:
            return opened_stream(self.name)
        except OSError as error:
            raise NotFoundError(f"{self.name}: cannot be read: {error.strerror}") from error


def expect_once(names: Sequence[str]) -> None:
    """Raise UsageError for a file that is named twice; two hard links are two files."""
    counts = Counter(name if name == STDIN or is_url(name) else os.path.realpath(name) for name in names)
    if twice := [place for place, count in counts.items() if count > 1]:
        raise UsageError(f"{twice[0]}: named twice; each input is read once")


def files_below(folder: str) -> list[str]:
    """The paths, relative to a folder, of all files below it, sorted, without hidden (dot) files and folders."""
    paths: list[list[str]] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inner = os.path.relpath(place, folder)
        parts = [] if inner == os.curdir else inner.split(os.sep)
        paths += [[*parts, name] for name in names if not name.startswith(".")]
    return [os.sep.join(parts) for parts in sorted(paths)]


def matches(path: str) -> list[str]:
    """The files and directories that a glob matches, sorted; any other path as it is. Raises NotFoundError."""
    if is_url(path) or os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    paths = sorted(glob.glob(path, recursive=True))
    if not paths:
        raise NotFoundError(f"{path}: no file matches this pattern")
    if other := next(
        (name for name in paths if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)), None
    ):
        raise _no_file(other, path)
    return paths


def inputs_of(path: str) -> list[str]:
    """The file at a path or URL, or the files in a directory (recursively, sorted by path, without names that begin with a dot,
    as in shells) or a folder behind a URL. Raises NotFoundError."""
    if is_url(path):
        return remote_files(path)
    if not os.path.isdir(path):
        return [path]
    files, folder = files_below(path), str(Path(path))
    if not files:
        raise NotFoundError(f"{path}: the directory holds no files")
    files = files if folder == os.curdir else [os.path.join(folder, name) for name in files]
    if other := next((name for name in files if os.path.exists(name) and not os.path.isfile(name)), None):
        raise _no_file(other, path)
    return files


def inspected(path: str) -> Input:
    """The Input that is a file, a pipe, a URL or standard input. Raises NotFoundError for what cannot be read."""
    if path == STDIN:
        return Input(STDIN)
    if is_url(path):
        if (size := size_of(path)) is None:
            raise NotFoundError(f"{path}: no such file")
        return Input(path, size)
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
        names = [name for name in objects_below(folder) if matches(name)]
        if not names:
            raise NotFoundError(f"{url}: no file matches this pattern")
    elif size_of(url) is not None or not (below := objects_below(url)) or MANIFEST in below:
        return [url]
    else:
        folder = url.rstrip("/")
        names = [name for name in below if not any(part.startswith((".", "_")) for part in name.split("/"))]
        if not names:
            raise NotFoundError(f"{url}: the folder holds no files")
    return [f"{folder}/{name}" for name in sorted(names)]


# --- bytes -----------------------------------------------------------------------------------------------------------------

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD = max(map(len, _MAGIC))
_PIECE = 1 << 16  # compressed bytes read at once


def open_bytes(file: Bytes, name: str) -> tuple[Bytes, str | None]:
    """(stream of the decompressed bytes of the unbuffered `file`, name of the compression or None).

    A plain seekable file is returned itself. Reading raises BadInputError naming `name` when the compressed data is damaged or
    truncated. Closing the stream closes the file.
    """
    head = b""
    while len(head) < _HEAD and (more := file.read(_HEAD - len(head))):
        head += more
    kind = _sniff(head)
    whole = file
    if file.seekable():
        file.seek(0)
    else:
        whole = Joined(head, file)
    return (whole, None) if kind is None else (_Decompressed(whole, name, kind), kind)


def expect_whole(file: Bytes, name: str) -> None:
    """Raise BadInputError when `file` is compressed and its data is damaged anywhere."""
    stream, kind = open_bytes(file, name)
    buffer = bytearray(1 << 20)
    while kind is not None and stream.readinto(buffer):
        pass


def _sniff(head: bytes) -> str | None:
    if len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd"  # a skippable frame may come first
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


class Joined(io.RawIOBase):
    """`head`, then the rest of `file`. It cannot be sought."""

    def __init__(self, head: bytes, file: Bytes) -> None:
        self._head, self._file = memoryview(head), file

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int | None:
        if not self._head:
            return self._file.readinto(target)
        room = memoryview(target)
        n = min(len(room), len(self._head))
        room[:n] = self._head[:n]
        self._head = self._head[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


_LIBRARIES: dict[str, Callable[[io.BufferedReader], Bytes]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file), "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile,
}  # fmt: skip


class _Decompressed(io.RawIOBase):
    """The bytes of one or more consecutive compressed streams."""

    def __init__(self, file: Bytes, name: str, kind: str) -> None:
        self._file, self._name, self._kind = file, name, kind
        source: io.BufferedReader = io.BufferedReader(file, _PIECE)
        if kind == "zstd":  # the package zstandard takes a missing end for the end
            import pyarrow as pa

            self._stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
        else:
            self._stream = _LIBRARIES[kind](source)

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        try:
            return self._stream.readinto(target)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a disk error, not bad data
            where = f" before byte {self._file.tell():,} of the file" if self._file.seekable() else ""
            raise BadInputError(f"{self._name}: the {self._kind} data is damaged{where} ({error}); copy it again") from error

    def close(self) -> None:
        self._file.close()
        super().close()
