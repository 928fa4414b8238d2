"""Matrices on disk whose entries are in column order, sorted by rows in bounded memory.

Two passes over the entries: one counts those of each row, the other writes every entry to its place in a scratch file, where a
bucket holds the entries of a run of rows. Then each bucket is sorted in memory. The file has no name, so it vanishes however
the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.files import disk_full
from streamcut.io.indices import expect_indices
from streamcut.io.sources.canonical import RawRows

AT_ONCE = 1 << 18  # entries read at once, and entries per bucket: about 100 bytes each

Read = Callable[[slice], tuple[np.ndarray, np.ndarray]]


def by_rows(indptr: np.ndarray, read: Read, n_rows: int, folder: str, where: str, start: int = 0) -> Iterator[RawRows]:
    """The rows of a CSC matrix from number `start` on; entries of a row by increasing column.

    indptr int64 (columns + 1), checked; `read` gives (rows, values) of a range of entries; folder: of the scratch file

    Raises BadInputError for row numbers out of range, DiskFullError.
    """
    counts, nnz, value_type = np.zeros(n_rows, np.int64), int(indptr[-1]), np.dtype(np.float64)
    for begin in range(0, nnz, AT_ONCE):
        rows, values = read(slice(begin, min(begin + AT_ONCE, nnz)))
        expect_indices(rows, n_rows, where, "row of an entry")
        counts += np.bincount(rows, minlength=n_rows)
        value_type = values.dtype
    ends = np.concatenate([[0], np.cumsum(counts)])
    firsts = [0]  # rows with which buckets begin: each holds AT_ONCE entries, or one row
    while firsts[-1] < n_rows:
        stop = int(np.searchsorted(ends, ends[firsts[-1]] + AT_ONCE, side="right")) - 1
        firsts.append(min(max(stop, firsts[-1] + 1), n_rows))
    record = np.dtype([("row", np.int64), ("column", np.int64), ("value", value_type)])
    with disk_full(folder, nnz * record.itemsize), tempfile.TemporaryFile(dir=folder) as scratch:
        filled = ends[firsts[:-1]]
        for begin in range(0, nnz, AT_ONCE):
            stop = min(begin + AT_ONCE, nnz)
            entries = np.empty(stop - begin, record)
            entries["row"], entries["value"] = read(slice(begin, stop))
            entries["column"] = np.searchsorted(indptr, np.arange(begin, stop), side="right") - 1
            buckets = np.searchsorted(firsts, entries["row"], side="right") - 1
            order = np.argsort(buckets, kind="stable")
            present, at = np.unique(buckets[order], return_index=True)
            for bucket, first, last in zip(present.tolist(), at.tolist(), [*at.tolist()[1:], len(order)], strict=True):
                scratch.seek(int(filled[bucket]) * record.itemsize)
                scratch.write(entries[order[first:last]].view(np.uint8).data)
                filled[bucket] += last - first
        for bucket, (first, stop) in enumerate(pairwise(firsts)):
            if stop <= start:
                continue
            if filled[bucket] != ends[stop]:
                raise BadInputError(f"{where}: its entries changed while they were read")
            begin, first = int(ends[first]), max(first, start)
            scratch.seek(begin * record.itemsize)
            entries = np.frombuffer(scratch.read((int(ends[stop]) - begin) * record.itemsize), record)
            entries = entries[np.lexsort((entries["column"], entries["row"]))][int(ends[first]) - begin :]
            yield RawRows(ends[first : stop + 1], entries["column"], entries["value"])
