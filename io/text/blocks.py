"""Text cut into blocks of whole lines, in reusable buffers, and blocks parsed into rows."""

from __future__ import annotations

import queue
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.redaction import redacted
from streamcut.io.remote import AHEAD_BYTES, is_url
from streamcut.io.text import kernels as k
from streamcut.io.text.inputs import Bytes, Input, inspected, open_bytes


class RawBlock:
    """A buffer and its lines: text[:stop], from byte `offset` of the decompressed input number `file`; `taken`: of its bytes.

    text[stop] is a line feed, the first of `padding` bytes. `last`: the file ends here, `unterminated`: without a line feed.
    `too_long`: no line feed in the first `stop` bytes, the most memory for a line; the line has `line_bytes`, counted up to a
    limit.
    """

    def __init__(self, size: int, padding: int) -> None:
        self._size, self._padding = size, padding
        self.text = bytearray(size + padding)
        self.file = self.offset = self.stop = self.line_bytes = self.taken = 0
        self.last = self.unterminated = self.too_long = False

    @property
    def capacity(self) -> int:
        return len(self.text) - self._padding

    @property
    def array(self) -> np.ndarray:
        """uint8 view of the whole buffer; no view may be alive when the buffer grows."""
        return np.frombuffer(self.text, dtype=np.uint8)

    def fill(self, stream: Bytes, head: bytes, limit: int) -> bytes:
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
                while have < size and (n := stream.readinto(view[have:size])):
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
                block.taken, last = raw.tell() if inputs[number].regular else 0, block.last
                yield block


def _bytes_to_line_feed(stream: Bytes, most: int) -> int:
    """The number of bytes until the line or the file ends, or `most`."""
    buffer, length = bytearray(1 << 20), 0
    while length < most and (n := stream.readinto(buffer)):
        at = buffer.find(10, 0, n)
        if at >= 0:
            return length + at
        length += n
    return length


def _skip(stream: Bytes, offset: int, seekable: bool) -> int:
    if seekable:
        return stream.seek(offset)
    buffer, left = bytearray(1 << 20), offset
    with memoryview(buffer) as view:
        while left and (n := stream.readinto(view[:left])):
            left -= n
    return offset - left


class TextSource:
    """What sources of text have in common: the files, pipes, URLs and standard input named `paths`."""

    notes: Sequence[str] = ()
    rejects: Sequence[str] = ()
    rereads = False
    total_rows = None

    def __init__(self, paths: Sequence[str]) -> None:
        self.inputs, self.paths = [inspected(path) for path in paths], paths
        self.identity = {"inputs": [[redacted(file.name), file.size, file.mtime_ns] for file in self.inputs]}
        self.held_bytes = AHEAD_BYTES if any(map(is_url, self.paths)) else 0


BOM = b"\xef\xbb\xbf"
LARGEST_INDEX = np.iinfo(np.int32).max
_COUNTED = {"rows": k.ROW, "lines": k.LINE, "comment_lines": k.COMMENTS, "unsorted_rows": k.UNSORTED, "explicit_zeros": k.ZEROS}
_COUNTED |= {"underflows": k.UNDERFLOWS, "duplicates": k.DUPLICATES}


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that the kernel refused: its number in the block (from 0), its bytes, the reason and the byte position."""

    line: int
    text: bytes
    code: int
    at: int


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """Rows in new arrays, and what was counted; `refused` has one item if the first refusal ended the parse."""

    chunk: Chunk
    refused: list[Refused]
    qid_mode: int
    lowest: int  # 0-based feature
    highest: int
    counts: dict[str, int]


class BlockParser:
    """Memory for parsing one block at a time. Most of it is reserved for the worst case and stays untouched."""

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._capacity = -1

    def _reserve(self, size: int) -> None:
        entries, rows = 2 * (size // 4 + 1), size // 2 + 1
        self._rows = k.ParsedRows(
            indptr=np.zeros(rows + 1, np.int64),
            indices=np.empty(entries, np.int64),
            data=np.empty(entries, self._dtype),
            y=np.empty(rows),
            qid=np.empty(rows, np.int64),
            weight=np.empty(rows),
        )
        self._pending = np.empty((rows, 2), np.int64)
        self._capacity = size

    def parse(
        self, block: RawBlock, rules: k.Rules, qid_mode: int, label_of: Callable[[bytes], float], skip: bool
    ) -> ParsedBlock:
        """Rows of `block`. `label_of` returns the value of a label token, nan to refuse it; `skip`: skip refused lines."""
        if self._capacity != block.capacity:
            self._reserve(block.capacity)
        cursor = np.zeros(k.CURSOR, np.int64)
        cursor[k.QID], cursor[k.TOP], cursor[k.BOTTOM] = qid_mode, -1, np.iinfo(np.int64).max
        if block.offset == 0 and block.text.startswith(BOM):
            cursor[k.POSITION] = len(BOM)
        array, text, refused = block.array, block.text, []
        while True:
            self._run(array, text, block.stop, rules, cursor, label_of)
            code = int(cursor[k.CODE])
            if code == k.DONE:
                break
            start = int(cursor[k.POSITION])
            end = text.index(b"\n", start)
            refused.append(Refused(int(cursor[k.LINE]), bytes(memoryview(text)[start:end]), code, int(cursor[k.TOKEN]) - start))
            if not skip:
                break
            cursor[k.POSITION] = end + 1
            cursor[k.LINE] += 1
        rows, n, nnz, top = self._rows, int(cursor[k.ROW]), int(cursor[k.ENTRY]), int(cursor[k.TOP])
        chunk = Chunk(
            indptr=rows.indptr[: n + 1].copy(),
            indices=rows.indices[:nnz].astype(np.int32 if top <= LARGEST_INDEX else np.int64),
            data=rows.data[:nnz].copy(),
            y=rows.y[:n].copy(),
            qid=rows.qid[:n].copy() if cursor[k.QID] == k.QID_REQUIRED else None,
            weight=rows.weight[:n].copy() if rules.label_weights else None,
        )
        counts = {name: int(cursor[slot]) for name, slot in _COUNTED.items()}
        if rules.hash_bits:
            counts["unsorted_rows"] = 0  # hashes have no order that a file could keep
        return ParsedBlock(chunk, refused, int(cursor[k.QID]), int(cursor[k.BOTTOM]), top, counts)

    def _run(self, array, text, stop, rules, cursor, label_of) -> None:
        """Run the kernel from `cursor` on until nothing is pending."""

        def value(start: int, end: int) -> float:
            token = bytes(memoryview(text)[start : max(end, ~end)])
            return label_of(token) if end < 0 else float(token)

        until_known(
            lambda *tokens: k.parse(array, stop, rules, self._rows, cursor, self._pending, *tokens), cursor, self._pending, value
        )


def until_known(
    run: Callable[[np.ndarray, np.ndarray], None], cursor: np.ndarray, pending: np.ndarray, value: Callable[[int, int], float]
) -> None:
    """Run a kernel with the sorted positions and the values of tokens that it left pending, until none are.

    value   that of the token with this start and end in `pending`
    """
    before, pairs, values = cursor.copy(), np.empty((0, 2), np.int64), np.empty(0)
    while True:
        run(pairs[:, 0].copy(), values)
        if cursor[k.PENDING] == 0:
            return
        pairs = np.concatenate((pairs, pending[: cursor[k.PENDING]]))
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        values = np.array([value(start, end) for start, end in pairs.tolist()])
        cursor[:] = before
