"""Matrices whose entries are in column order or unordered, sorted by rows in bounded memory.

Two passes over the entries: one counts those of each row, the other writes every entry to its place in a scratch file, where a
bucket holds the entries of a run of rows. Then each bucket is sorted in memory. The file has no name, so it vanishes however
the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.files import disk_full
from streamcut.io.indices import expect_indices
from streamcut.io.sources.arrays import Entries
from streamcut.io.sources.row_source import BlockSize, row_ranges

AT_ONCE = 1 << 19  # entries read at once, and entries per bucket
SORT_BYTES = 128  # per entry while sorting


class Scattered(NamedTuple):
    """Entries of a matrix in any order: rows and columns of any integer type, values of any real type, equally long."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def held_bytes(n_rows: int) -> int:
    """Memory of `by_rows`: counts of rows, the entries read at once, and a bucket."""
    return 24 * n_rows + 2 * AT_ONCE * SORT_BYTES


def by_rows(
    blocks: Callable[[], Iterator[Scattered]], n_rows: int, folder: str, size: BlockSize, where: str, start: int = 0
) -> Iterator[Entries]:
    """The rows from number `start` on, in pieces cut by `row_ranges`; entries of a row by increasing column.

    blocks   yields all entries, the same each time; folder: of the scratch file

    Raises BadInputError for row numbers out of range, DiskFullError, MemoryBudgetError for a row beyond `size.most`.
    """
    counts = np.zeros(n_rows, np.int64)
    value_type = np.dtype(np.float64)
    for block in blocks():
        expect_indices(block.rows, n_rows, where, "row of an entry")
        counts += np.bincount(block.rows, minlength=n_rows)
        value_type = block.values.dtype
    indptr = np.concatenate([[0], np.cumsum(counts)])
    del counts
    firsts = _bucket_rows(indptr)
    record = np.dtype([("row", np.int64), ("column", np.int64), ("value", value_type)])
    with disk_full(folder, int(indptr[-1]) * record.itemsize), tempfile.TemporaryFile(dir=folder) as scratch:
        filled = indptr[firsts[:-1]].copy()
        for block in blocks():
            _place(block, firsts, filled, record, scratch)
        for bucket, (first, stop) in enumerate(pairwise(firsts.tolist())):
            if stop <= start:
                continue
            begin = int(indptr[first])
            scratch.seek(begin * record.itemsize)
            entries = np.frombuffer(scratch.read((int(indptr[stop]) - begin) * record.itemsize), record)
            if filled[bucket] != indptr[stop]:
                raise BadInputError(f"{where}: its entries changed while they were read")
            order = np.lexsort((entries["column"], entries["row"]))
            entries = entries[order]
            first = max(first, start)
            skipped = int(indptr[first]) - begin
            rows = indptr[first : stop + 1] - indptr[first]
            columns, values = entries["column"][skipped:], entries["value"][skipped:]
            for low, high in row_ranges(rows, size, where, int(first)):
                cut = slice(int(rows[low]), int(rows[high]))
                yield Entries(int(first) + low, int(first) + high, rows[low : high + 1], columns[cut], values[cut])


def _bucket_rows(indptr: np.ndarray) -> np.ndarray:
    """The first row of each bucket, and the number of rows: a bucket has as many rows as fit AT_ONCE entries, at least one."""
    n_rows, firsts = len(indptr) - 1, [0]
    while firsts[-1] < n_rows:
        stop = int(np.searchsorted(indptr, indptr[firsts[-1]] + AT_ONCE, side="right")) - 1
        firsts.append(min(max(stop, firsts[-1] + 1), n_rows))
    return np.array(firsts, np.int64)


def _place(block: Scattered, firsts: np.ndarray, filled: np.ndarray, record: np.dtype, scratch) -> None:
    """Append entries to their buckets (`filled` entries each, updated in place)."""
    buckets = np.searchsorted(firsts, block.rows, side="right") - 1
    order = np.argsort(buckets, kind="stable")
    entries = np.empty(len(order), record)
    entries["row"], entries["column"], entries["value"] = block.rows[order], block.columns[order], block.values[order]
    present, starts = np.unique(buckets[order], return_index=True)
    for bucket, first, stop in zip(present.tolist(), starts.tolist(), [*starts.tolist()[1:], len(order)], strict=True):
        scratch.seek(int(filled[bucket]) * record.itemsize)
        scratch.write(entries[first:stop].view(np.uint8).data)
        filled[bucket] += stop - first


def column_entries(indptr: np.ndarray, read: Callable[[slice], tuple[np.ndarray, np.ndarray]], where: str) -> Iterator[Scattered]:
    """Entries of a matrix in column order. `read` gives (rows, values) of a range of entries. Raises BadInputError."""
    if len(indptr) == 0 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise BadInputError(f"{where}: column pointers do not increase from 0; the file is damaged")
    for begin in range(0, int(indptr[-1]), AT_ONCE):
        end = min(begin + AT_ONCE, int(indptr[-1]))
        rows, values = read(slice(begin, end))
        if len(rows) != end - begin or len(values) != end - begin:
            raise BadInputError(f"{where}: indices or values end early; the file is damaged")
        first = int(np.searchsorted(indptr, begin, side="right")) - 1
        last = int(np.searchsorted(indptr, end, side="left"))
        sizes = np.diff(np.clip(indptr[first : last + 1], begin, end))
        yield Scattered(rows, np.repeat(np.arange(first, last), sizes), values)
