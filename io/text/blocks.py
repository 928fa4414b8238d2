"""Parses one block of text into rows: runs the kernel, resolves pending tokens, and collects the refused lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.io.text import kernels as k
from streamcut.io.text.raw_blocks import RawBlock

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that the kernel refused: its number in the block (from 0), its bytes, the reason and the byte position."""

    line: int
    text: bytes
    code: int
    at: int


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """Rows in arrays of their own, and the counts of the block; `refused` has one item if the first refusal ended the parse."""

    chunk: Chunk
    refused: list[Refused]
    lines: int
    qid_mode: int
    lowest: int  # 0-based feature
    highest: int
    comments: int
    unsorted_rows: int
    zeros: int
    underflows: int
    duplicates: int


class BlockParser:
    """Memory for parsing one block at a time. Most of it is reserved for the worst case and stays untouched."""

    def __init__(self, dtype: np.dtype, wide: bool) -> None:
        self._dtype, self._wide = dtype, wide
        self._capacity = -1

    def _reserve(self, size: int, wide: bool) -> None:
        entries, rows = 2 * (size // 4 + 1), size // 2 + 1
        self._rows = k.Rows(
            indptr=np.zeros(rows + 1, np.int64),
            indices=np.empty(entries, np.int64 if wide else np.int32),
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
        wide = self._wide
        while True:
            if self._capacity != block.capacity or (self._rows.indices.itemsize == 8) != wide:
                self._reserve(block.capacity, wide)
            parsed = self._parse(block, rules, qid_mode, label_of, skip)
            if parsed is not None:
                return parsed
            wide = True  # an index beyond int32: again, with int64

    def _parse(self, block, rules, qid_mode, label_of, skip) -> ParsedBlock | None:
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
            if code == k.INDEX_WIDE:
                return None
            start = int(cursor[k.POSITION])
            end = text.index(b"\n", start)
            refused.append(Refused(int(cursor[k.LINE]), bytes(memoryview(text)[start:end]), code, int(cursor[k.TOKEN]) - start))
            if not skip:
                break
            cursor[k.POSITION] = end + 1
            cursor[k.LINE] += 1
        rows, n, nnz = self._rows, int(cursor[k.ROW]), int(cursor[k.ENTRY])
        chunk = Chunk(
            indptr=rows.indptr[: n + 1].copy(),
            indices=rows.indices[:nnz].copy(),
            data=rows.data[:nnz].copy(),
            y=rows.y[:n].copy(),
            qid=rows.qid[:n].copy() if cursor[k.QID] == k.QID_REQUIRED else None,
            weight=rows.weight[:n].copy() if rules.label_weights else None,
        )
        counts = (int(cursor[slot]) for slot in (k.BOTTOM, k.TOP, k.COMMENTS, k.UNSORTED, k.ZEROS, k.UNDERFLOWS, k.DUPLICATES))
        return ParsedBlock(chunk, refused, int(cursor[k.LINE]), int(cursor[k.QID]), *counts)

    def _run(self, array, text, stop, rules, cursor, label_of) -> None:
        """Run the kernel from `cursor` on until nothing is pending."""
        start, pairs = cursor.copy(), np.empty((0, 2), np.int64)
        known = np.empty(0)
        while True:
            k.parse(array, stop, rules, self._rows, cursor, self._pending, pairs[:, 0].copy(), known)
            if cursor[k.PENDING] == 0:
                return
            pairs = np.concatenate((pairs, self._pending[: cursor[k.PENDING]]))
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            known = np.array([_value(text, a, b, label_of) for a, b in pairs.tolist()])
            cursor[:] = start


def _value(text: bytearray, start: int, end: int, label_of: Callable[[bytes], float]) -> float:
    token = bytes(memoryview(text)[start : max(end, ~end)])
    return label_of(token) if end < 0 else float(token)
