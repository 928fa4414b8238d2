"""Bytes of plain, gzip, bzip2, xz and zstd files, recognised by their first bytes, not by name.

The standard library's file readers ignore junk after the last stream, and zstandard's a missing end. Here one loop drives all
four decompressors: each stream must be complete, and only zero padding may follow.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, cast

from streamcut.errors import BadInputError, NotFoundError

_PIECE = 1 << 16  # compressed bytes read at once
_ZSTD_PIECE = 1 << 10  # compressed bytes given to zstd at once; they expand to 32 MB at most, which bounds the memory
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD = max(map(len, _MAGIC))
_LINE = 1 << 20  # most bytes of a line in formats with short lines
_MEMORY = 1 << 28  # memory limit of the xz decoder, in bytes; `xz -9` needs 65 MB to unpack


def open_bytes(file: BinaryIO, name: str) -> tuple[BinaryIO, str | None]:
    """(stream of the decompressed bytes of the unbuffered `file`, name of the compression or None).

    A plain seekable file is returned itself. Reading raises BadInputError naming `name` when the compressed data is damaged,
    truncated, or followed by other data. Raises NotFoundError for zstd without the package zstandard.
    """
    head = b""
    while len(head) < _HEAD and (more := file.read(_HEAD - len(head))):
        head += more
    kind = _sniff(head)
    if kind is None and file.seekable():
        file.seek(0)
        return file, None
    if kind is None:
        return cast(BinaryIO, _Resumed(head, file)), None
    return cast(BinaryIO, _Decompressed(head, file, name, kind)), kind


def expect_whole(file: BinaryIO, name: str) -> None:
    """Raise BadInputError when `file` is compressed and its data is damaged anywhere."""
    stream, kind = open_bytes(file, name)
    buffer = bytearray(1 << 20)
    while kind is not None and stream.readinto(buffer):  # type: ignore[attr-defined]
        pass


class ShortLines(io.RawIOBase):
    """The bytes of `stream`, for readers that hold whole lines: BadInputError naming `name` for lines over 1 MB."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name, self._length, self._lines = stream, name, 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        count = self._stream.readinto(target)  # type: ignore[attr-defined]
        found = bytes(target[:count])
        end = found.rfind(b"\n")
        self._lines += found.count(b"\n")
        self._length = count - end - 1 if end >= 0 else self._length + count
        if self._length > _LINE:
            raise BadInputError(f"{self._name}:{self._lines + 1}: a line of more than {_LINE:,} bytes")
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def _sniff(head: bytes) -> str | None:
    if len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd"  # a skippable frame may come first
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


class _Resumed(io.RawIOBase):
    """`head`, then the rest of `file`."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        if not self._head:
            return self._file.readinto(target)  # type: ignore[attr-defined]
        n = min(len(target), len(self._head))
        target[:n] = self._head[:n]
        self._head = self._head[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


class _Decompressed(io.RawIOBase):
    """The bytes of one or more consecutive compressed streams."""

    def __init__(self, head: bytes, file: BinaryIO, name: str, kind: str) -> None:
        self._input, self._file, self._name, self._kind = head, file, name, kind
        self._taken = len(head)  # bytes read from the file
        self._new, errors = _decompressor(kind, name)
        self._errors = (OSError, EOFError, ValueError, errors)
        self._stream = self._new()

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        try:
            return self._fill(target)
        except BadInputError:
            raise
        except self._errors as error:
            if getattr(error, "errno", None) is not None:
                raise  # a disk error, not bad data
            raise BadInputError(
                f"{self._name}: the {self._kind} data is damaged before byte {self._taken:,} of the file ({error}); copy it again"
            ) from error

    def _fill(self, target) -> int:
        while self._stream is not None:
            given = b""
            if self._stream.needs_input:
                given = self._input or self._more()
                self._input = b""
                if not given:
                    raise BadInputError(
                        f"{self._name}: the {self._kind} data is damaged: truncated at byte {self._taken:,}; copy the file again"
                    )
            out = self._stream.decompress(given, len(target))
            if self._stream.eof:
                self._input = self._stream.unused_data
                self._stream = self._next_stream()
            if out:
                target[: len(out)] = out
                return len(out)
        return 0

    def _next_stream(self) -> Any:
        """A decompressor for the next stream, None at the end of the file."""
        while True:
            self._input = self._input.lstrip(b"\0")  # tape blocks of gzip, padding of xz
            if len(self._input) < _HEAD:
                more = self._more()
                self._input += more
                if more:
                    continue
            if not self._input:
                return None
            if _sniff(self._input) != self._kind:
                at = self._taken - len(self._input)
                raise BadInputError(
                    f"{self._name}: the {self._kind} data is damaged: other data follows its end, at byte {at:,} of the file"
                )
            return self._new()

    def _more(self) -> bytes:
        more = self._file.read(_PIECE)
        self._taken += len(more)
        return more

    def close(self) -> None:
        self._file.close()
        super().close()


def _decompressor(kind: str, name: str) -> tuple[Callable[[], Any], type[Exception]]:
    """(factory of decompressors with `decompress(bytes, max_length)`, `needs_input`, `eof`, `unused_data`; their error type)."""
    if kind == "zstd":
        try:
            import zstandard
        except ImportError as error:
            raise NotFoundError(f"{name}: zstd needs the package zstandard; run: pip install 'streamcut[zstd]'") from error
        return lambda: _Zstd(zstandard.ZstdDecompressor().decompressobj()), zstandard.ZstdError
    if kind == "gzip":
        return _Gzip, zlib.error
    return (
        (bz2.BZ2Decompressor, OSError) if kind == "bzip2" else (partial(lzma.LZMADecompressor, memlimit=_MEMORY), lzma.LZMAError)
    )


class _Gzip:
    """zlib with the interface of the other decompressors."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, given: bytes, max_length: int) -> bytes:
        out = self._zlib.decompress(self._zlib.unconsumed_tail + given, max_length)
        self.needs_input = len(out) < max_length and not self._zlib.unconsumed_tail
        return out

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data


class _Zstd:
    """zstandard's decompressor, which lacks `max_length`, fed in small pieces."""

    def __init__(self, stream) -> None:
        self._stream, self._input, self._out = stream, memoryview(b""), memoryview(b"")

    @property
    def needs_input(self) -> bool:
        return not self._out and not self._input

    def decompress(self, given: bytes, max_length: int) -> bytes | memoryview:
        if given:
            self._input = memoryview(given)
        if not self._out:
            self._out = memoryview(self._stream.decompress(self._input[:_ZSTD_PIECE]))
            self._input = self._input[_ZSTD_PIECE:]
        out, self._out = self._out[:max_length], self._out[max_length:]
        return out

    @property
    def eof(self) -> bool:
        return self._stream.eof and not self._out

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data + bytes(self._input)
