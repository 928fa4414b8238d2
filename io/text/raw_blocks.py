"""Input cut into blocks of whole lines, in reusable buffers, optionally read ahead by a separate thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import BinaryIO

import numpy as np

from streamcut.io.text.decompress import open_bytes
from streamcut.io.text.inputs import Input


class RawBlock:
    """A buffer and its lines: text[:stop], from byte `offset` of the decompressed input number `file`.

    text[stop] is a line feed, the first of `padding` bytes. `last`: the file ends here, `unterminated`: without a line feed.
    `too_long`: no line feed in the first `stop` bytes, the most memory for a line; the line has `line_bytes`, counted up to a
    limit.
    """

    def __init__(self, size: int, padding: int) -> None:
        self._size, self._padding = size, padding
        self.text = bytearray(size + padding)
        self.file = self.offset = self.stop = self.line_bytes = 0
        self.last = self.unterminated = self.too_long = False

    @property
    def capacity(self) -> int:
        return len(self.text) - self._padding

    @property
    def array(self) -> np.ndarray:
        """uint8 view of the whole buffer; no view may be alive when the buffer grows."""
        return np.frombuffer(self.text, dtype=np.uint8)

    def fill(self, stream: BinaryIO, head: bytes, limit: int) -> bytes:
        """Read whole lines that begin with `head`; returns the beginning of the line after them.

        The size of the block depends only on the bytes from its start on, never on how they arrive.
        """
        if self.capacity > self._size:
            self.text = bytearray(self._size + self._padding)  # free the memory of a long line
        have, checked, size = len(head), 0, self._size
        while size < have:
            size *= 2
        self._grow(size)
        self.text[:have] = head
        self.last = self.unterminated = self.too_long = False
        while True:
            with memoryview(self.text) as view:
                while have < size and (n := stream.readinto(view[have:size])):  # type: ignore[attr-defined]
                    have += n
            self.last = have < size
            cut = have if self.last else self.text.rfind(b"\n", checked, have) + 1
            if cut > 0 or self.last or have >= limit:
                break
            checked, size = have, min(2 * size, limit)
            self._grow(size)
        if cut == 0 and not self.last:
            self.too_long, cut = True, have
        self.stop = cut
        self.unterminated = self.last and cut > 0 and self.text[cut - 1] != 10
        rest = bytes(memoryview(self.text)[cut:have])
        self.text[cut] = 10
        return rest

    def _grow(self, size: int) -> None:
        if size > self.capacity:
            self.text.extend(bytes(size - self.capacity))


def read_blocks(
    inputs: Sequence[Input], file: int, offset: int, free: queue.SimpleQueue, limit: int, longest: int = 0
) -> Generator[RawBlock]:
    """Blocks from byte `offset` of inputs[file] on, in buffers taken from `free` (None there ends it).

    An empty file is one block. A line may take `limit` bytes; those of a longer one are counted, up to `longest`. Raises
    NotFoundError for a file that can't be opened and BadInputError for damaged compressed data.
    """
    for number in range(file, len(inputs)):
        raw = inputs[number].open()
        with closing(raw):
            stream, compression = open_bytes(raw, inputs[number].name)
            position, head, last = 0, b"", False
            if number == file and offset:
                position = _skip(stream, offset, inputs[number].regular and compression is None)
            while not last:
                block = free.get()
                if block is None:
                    return
                block.file, block.offset = number, position
                head = block.fill(stream, head, limit)
                if block.too_long:
                    block.line_bytes = block.stop + _bytes_to_line_feed(stream, longest - block.stop + 1)
                position += block.stop
                last = block.last
                yield block


def _bytes_to_line_feed(stream: BinaryIO, most: int) -> int:
    """The number of bytes until the line or the file ends, or `most`."""
    buffer, found = bytearray(1 << 20), 0
    while found < most and (n := stream.readinto(buffer)):  # type: ignore[attr-defined]
        at = buffer.find(10, 0, n)
        if at >= 0:
            return found + at
        found += n
    return found


def _skip(stream: BinaryIO, offset: int, seekable: bool) -> int:
    if seekable:
        return stream.seek(offset)
    buffer, left = bytearray(1 << 20), offset
    with memoryview(buffer) as view:
        while left and (n := stream.readinto(view[:left])):  # type: ignore[attr-defined]
            left -= n
    return offset - left


class ReadAhead:
    """The blocks of an iterator, read ahead by a thread as far as there are free buffers."""

    def __init__(self, blocks: Iterator[RawBlock], free: queue.SimpleQueue) -> None:
        self._blocks, self._free = blocks, free
        self._ready: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="streamcut-read", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for block in self._blocks:
                self._ready.put(block)
            self._ready.put(None)
        except BaseException as error:  # passed to the thread that requests the next block
            self._ready.put(error)

    def __iter__(self) -> Iterator[RawBlock]:
        while (block := self._ready.get()) is not None:
            if isinstance(block, BaseException):
                raise block
            yield block

    def close(self) -> None:
        """Stop reading, without waiting for a read that blocks on a silent pipe."""
        self._free.put(None)
        self._thread.join(timeout=1)
