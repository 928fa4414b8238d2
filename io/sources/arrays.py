"""Arrays (SciPy sparse of any format, NumPy, data frames, CSC on disk) as runs of rows, and those of Python as a data set."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import check_csr, is_sparse
from streamcut.foundation.files import disk_full
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.canonical import RawRows, expect_indices
from streamcut.io.sources.labels import Labels, labels_of
from streamcut.io.sources.lazy import is_of
from streamcut.io.sources.source import AT_ONCE
from streamcut.io.stores.spec import SHARD_NNZ

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

_BUCKET = 1 << 18  # entries of a CSC matrix read at once, and entries that are sorted together: about 100 bytes each


class Sliced(Protocol):
    """A matrix on disk of which rows are read like those of an array: a data set of HDF5 or Zarr, a `.npy` file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice) -> np.ndarray: ...


def column_names(X: object) -> tuple[str, ...] | None:
    """The column names of a data frame; None for an array."""
    names = getattr(X, "columns", None)
    return None if names is None else tuple(str(name) for name in names)


def matrix_of(X: Any) -> np.ndarray | sp.sparray:
    """`X` as a SciPy matrix or a two-dimensional NumPy array, also from a frame. Raises BadInputError."""
    matrix = X if is_sparse(X) else X.sparse.to_coo() if _all_sparse(X) else np.asarray(X)
    if matrix.ndim != 2:
        raise BadInputError(f"X has {matrix.ndim} dimensions, not 2")
    if matrix.dtype.kind not in "biuf":
        raise BadInputError(f"X holds {matrix.dtype}, not real numbers; words and categories are encoded by streamcut.convert")
    return matrix


def _all_sparse(X: Any) -> bool:
    """Whether it is a frame of pandas whose columns are sparse."""
    return is_of(X, "pandas.DataFrame") and all(is_of(dtype, "pandas.SparseDtype") for dtype in X.dtypes)


def entries_of(X: np.ndarray | sp.sparray | Sliced, start: int = 0) -> Iterator[RawRows]:
    """The rows of a matrix of SciPy, or of what slices like a two-dimensional array, from row `start` on, without labels.

    Of an array a few rows at a time are read. Raises BadInputError for a malformed matrix.
    """
    n, d = X.shape
    if is_sparse(X):
        from scipy.sparse import csr_array

        rows = csr_array(X)
        check_csr(rows)
        begin = int(rows.indptr[start])
        yield RawRows(rows.indptr[start:], rows.indices[begin:], rows.data[begin:])
        return
    at_once = max(1, AT_ONCE // max(1, d))
    for first in range(start, n, at_once):
        block = np.asarray(X[first : min(first + at_once, n)])
        row, column = np.nonzero(block)
        yield RawRows(np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))]), column, block[row, column])


def in_memory(
    X: object,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    words: Mapping[str, float] | None = None,
    *,
    qid: ArrayLike | None = None,
    shard_nnz: int = SHARD_NNZ,
) -> MemoryDataset:
    """Rows in memory as a data set: what the pair (X, y) is, with weights and queries. Public as `streamcut.rows`.

    Every function that takes data takes it. Arrays are shared where their types allow it, so don't write into them afterwards.

    X          array, SciPy sparse matrix or data frame of numbers, (n, d); a frame's columns name the features; float32 and
               int8 stay as they are, everything else becomes float64
    y          array-like (n,): labels, numbers or words
    weight     array-like (n,): weights of the rows, at least 0; float64
    words      mapping of str to float: the number of each permitted label; without it words are numbered 0, 1, … in order of
               appearance
    qid        array-like (n,): query of each row, for rankings; rows of one query stand together; int64
    shard_nnz  the most nonzero values of a shard, into which the rows are cut; a larger row or query is a shard by itself

    Returns a MemoryDataset. Raises BadInputError for no rows, lengths that differ, a malformed matrix, values that are not
    finite, labels outside `words`, negative weights, and queries that are not grouped.
    """
    names, labels = column_names(X), Labels(words or {}, learn=words is None)
    matrix = matrix_of(X) if names is not None else X
    data = MemoryDataset(matrix, labels_of(y, labels), weight=weight, qid=qid, shard_nnz=shard_nnz)
    if names is not None or labels.rule.words:
        data.recipe = Recipe(labels=labels.rule, names=names)
    return data


def by_rows(
    indptr: np.ndarray,
    read: Callable[[slice], tuple[np.ndarray, np.ndarray]],
    n_rows: int,
    folder: str,
    where: str,
    start: int = 0,
) -> Iterator[RawRows]:
    """The rows of a CSC matrix on disk from number `start` on; entries of a row by increasing column. In bounded memory.

    Two passes over the entries: one counts those of each row, the other writes every entry to its place in a scratch file, where
    a bucket holds the entries of a run of rows. Then each bucket is sorted in memory. The file has no name, so it vanishes
    however the process ends.

    indptr int64 (columns + 1), checked; `read` gives (rows, values) of a range of entries; folder: of the scratch file

    Raises BadInputError for row numbers out of range, DiskFullError.
    """
    counts, nnz, value_type = np.zeros(n_rows, np.int64), int(indptr[-1]), np.dtype(np.float64)
    for begin in range(0, nnz, _BUCKET):
        rows, values = read(slice(begin, min(begin + _BUCKET, nnz)))
        expect_indices(rows, n_rows, where, "row of an entry")
        counts += np.bincount(rows, minlength=n_rows)
        value_type = values.dtype
    ends = np.concatenate([[0], np.cumsum(counts)])
    firsts = [0]  # rows with which buckets begin: each holds _BUCKET entries, or one row
    while firsts[-1] < n_rows:
        stop = int(np.searchsorted(ends, ends[firsts[-1]] + _BUCKET, side="right")) - 1
        firsts.append(min(max(stop, firsts[-1] + 1), n_rows))
    record = np.dtype([("row", np.int64), ("column", np.int64), ("value", value_type)])
    with disk_full(folder, nnz * record.itemsize), tempfile.TemporaryFile(dir=folder) as scratch:
        filled = ends[firsts[:-1]]
        for begin in range(0, nnz, _BUCKET):
            stop = min(begin + _BUCKET, nnz)
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
