"""Bytes of plain, gzip, bzip2, xz and zstd files, recognised by their first bytes, not by name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import Any, BinaryIO, cast

from streamcut.errors import BadInputError

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD = max(map(len, _MAGIC))
_PIECE = 1 << 16  # compressed bytes read at once


def open_bytes(file: BinaryIO, name: str) -> tuple[BinaryIO, str | None]:
    """(stream of the decompressed bytes of the unbuffered `file`, name of the compression or None).

    A plain seekable file is returned itself. Reading raises BadInputError naming `name` when the compressed data is damaged or
    truncated. Closing the stream closes the file.
    """
    head = b""
    while len(head) < _HEAD and (more := file.read(_HEAD - len(head))):
        head += more
    kind = _sniff(head)
    if file.seekable():
        file.seek(0)
        whole: Any = file
    else:
        whole = Joined(head, file)
    return (whole, None) if kind is None else (cast(BinaryIO, _Decompressed(whole, name, kind)), kind)


def expect_whole(file: BinaryIO, name: str) -> None:
    """Raise BadInputError when `file` is compressed and its data is damaged anywhere."""
    stream, kind = open_bytes(file, name)
    buffer = bytearray(1 << 20)
    while kind is not None and stream.readinto(buffer):  # type: ignore[attr-defined]
        pass


def _sniff(head: bytes) -> str | None:
    if len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd"  # a skippable frame may come first
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


class Joined(io.RawIOBase):
    """`head`, then the rest of `file`, then `tail`. It cannot be sought."""

    def __init__(self, head: bytes, file: Any, tail: bytes = b"") -> None:
        self._head, self._file, self._tail = memoryview(head), file, memoryview(tail)

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        if not self._head:
            if got := self._file.readinto(target):
                return got
            self._head, self._tail = self._tail, self._tail[:0]
        n = min(len(target), len(self._head))
        target[:n] = self._head[:n]
        self._head = self._head[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


class _Decompressed(io.RawIOBase):
    """The bytes of one or more consecutive compressed streams."""

    def __init__(self, file: Any, name: str, kind: str) -> None:
        self._counted, self._name, self._kind = Counted(file), name, kind
        source: Any = io.BufferedReader(self._counted, _PIECE)
        if kind == "zstd":  # the package zstandard takes a missing end for the end
            import pyarrow as pa

            self._stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
        else:
            opened: Any = {"gzip": lambda file: gzip.GzipFile(fileobj=file), "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}
            self._stream = opened[kind](source)

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        try:
            return self._stream.readinto(target)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # a disk error, not bad data
            raise BadInputError(
                f"{self._name}: the {self._kind} data is damaged before byte {self._counted.taken:,} of the file ({error}); "
                "copy it again"
            ) from error

    def close(self) -> None:
        self._counted.close()
        super().close()


class Counted(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.taken = stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        got = self.stream.readinto(target) or 0
        self.taken += got
        return got

    def close(self) -> None:
        self.stream.close()
        super().close()
