"""Quotes in CSV files that would swallow rows."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.text.inputs import Bytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_QUOTE, _LINE_END = b'"\n'
_LONGEST = 1 << 24  # bytes of a value, after which quotes are looked at no more


class Quotes(io.RawIOBase):
    """The bytes of a CSV file, unchanged. Raises BadInputError for a quote that opens a value and is closed by one within a line
    further down, or never: Arrow takes the rows between them for a part of the value, without a word."""

    def __init__(self, stream: Bytes, delimiter: str, name: str) -> None:
        mark = re.escape(delimiter.encode())
        self._end = re.compile(rb"[" + mark + rb"\r\n]")
        sound = rb'(?:"[^"]*(?:""[^"]*)*"[ \t]*|[^"' + mark + rb"\r\n][^" + mark + rb"\r\n]*|)[" + mark + rb"\r\n]"
        self._sound, self._closed = re.compile(rb"(?:" + sound + rb")*+"), re.compile(rb'"[^"]*(?:""[^"]*)*+"(?!")[ \t]*+')
        self._stream, self._name, self._rest, self._lines, self._unseen = stream, name, b"", 1, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        count = self._stream.readinto(target)
        if not count and self._open():
            raise BadInputError(
                f"{self._name}: a quote at the beginning of a value is never closed: the rows after it are lost in it"
            )
        read = bytes(memoryview(target)[:count])
        if len(self._rest) > _LONGEST:
            self._unseen += read.count(b'"')
        else:
            block = self._rest + read
            at = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
            if b'"' in block:
                codes = np.frombuffer(block, np.uint8, at)
                before = np.searchsorted(np.flatnonzero(codes == _QUOTE), np.flatnonzero(codes == _LINE_END))
                if (before % 2).any():  # else no value goes on over a line end
                    at = self._checked(block)
            self._lines += block.count(b"\n", 0, at)
            self._rest = block[at:]
        return count

    def _open(self) -> bool:
        """Whether a quoted value goes on at the end of the file."""
        if len(self._rest) > _LONGEST:
            return (self._rest.count(b'"') + self._unseen) % 2 == 1
        at = self._sound_until(self._rest, 0)
        return self._rest[at : at + 1] == b'"' and self._closed.match(self._rest, at) is None

    def _sound_until(self, block: bytes, at: int) -> int:
        match = self._sound.match(block, at)
        assert match is not None  # it also matches no value
        return match.end()

    def _checked(self, block: bytes) -> int:
        """Where the last value begins that does not end within `block`."""
        at = 0
        while True:
            at = self._sound_until(block, at)
            closed = self._closed.match(block, at)
            if closed is None or closed.end() == len(block):
                return at
            if (within := closed[0].count(b"\n")) > 0:
                line = self._lines + block.count(b"\n", 0, at)
                raise BadInputError(
                    f"{self._name}: line {line}: a value begins with a quote, which is closed "
                    f"{within} lines further down, within a line: rows would be lost in it (write a quote in quotes twice)"
                )
            after = self._end.search(block, closed.end())
            if after is None:
                return at
            at = after.end()

    def close(self) -> None:
        self._stream.close()
        super().close()
