"""Rows in CSR form, as stores read and write, parsers produce and kernels take them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard, cast

import numpy as np

from streamcut.errors import BadInputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Chunk:
    """`n` rows, consecutive unless there are `pieces`. Arrays may be views into reused buffers: copy them to keep them.

    indptr   int64 (n + 1): row i holds entries indptr[i]:indptr[i+1]; it need not start at 0, so a slice of rows is a view.
    indices  int32 or int64: 0-based features, strictly increasing within a row.
    data     int8, float32 or float64, same length as indices; None when every value is 1.
    y        float64 (n): labels as the user wrote them.
    qid      int64 (n) or None: query or sequence of each row.
    weight   float64 (n) or None: row weights, None = all 1.
    first_row  number of row 0 in the whole data set.
    pieces   (start, stop) of the consecutive ranges of rows; None: one, from first_row on.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    y: np.ndarray
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None
    first_row: int = 0
    pieces: tuple[tuple[int, int], ...] | None = None

    @property
    def numbers(self) -> np.ndarray:
        """int64 (n): the numbers of the rows in the whole data set."""
        if self.pieces is None:
            return np.arange(self.first_row, self.first_row + self.n_rows)
        return np.concatenate([np.arange(start, stop) for start, stop in self.pieces])

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    def rows(self, start: int, stop: int) -> Chunk:
        """Rows start:stop of a consecutive chunk as views; nothing is copied."""
        if start == 0 and stop == self.n_rows:
            return self
        cut = slice(start, stop)
        qid = None if self.qid is None else self.qid[cut]
        weight = None if self.weight is None else self.weight[cut]
        indptr, first = self.indptr[start : stop + 1], self.first_row + start
        return Chunk(indptr, self.indices, self.data, self.y[cut], qid, weight, first, self.pieces)

    def placed(self, first_row: int) -> Chunk:
        """The same rows, numbered from `first_row`."""
        if first_row == self.first_row:
            return self
        return replace(self, first_row=first_row)


def csr_arrays(X: object) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """(indptr int64, indices, data, shape) of `X`, an array (n, d) or anything that SciPy converts to a canonical csr_array.

    Values keep int8 and float32; everything else becomes float64. Arrays are shared where possible. A NumPy array needs no SciPy,
    whose import takes as long as a small training.
    """
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        if X.size and np.count_nonzero(X) == X.size:  # as in most numeric tables
            n, d = X.shape
            indices = np.empty((n, d), np.int32 if d <= 2**31 - 1 else np.int64)
            indices[:] = np.arange(d)
            return np.arange(0, X.size + 1, d), indices.ravel(), _kept(X.flatten()), X.shape
        rows, columns = np.nonzero(X)
        indptr = np.zeros(len(X) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(X)), out=indptr[1:])
        indices = columns if X.shape[1] > 2**31 - 1 else columns.astype(np.int32)
        return indptr, indices, _kept(X[rows, columns]), X.shape
    from scipy.sparse import csr_array

    sparse = csr_array(X)
    if sparse.ndim != 2:
        raise BadInputError(f"X has {sparse.ndim} dimensions, not 2")
    check_csr(sparse)
    if not sparse.has_canonical_format:
        sparse = sparse.copy()
        sparse.sum_duplicates()
    n, d = sparse.shape
    indices = sparse.indices if sparse.indices.dtype == np.int32 or d > 2**31 - 1 else sparse.indices.astype(np.int32)
    return sparse.indptr.astype(np.int64), indices, _kept(sparse.data), (n, d)


def _kept(values: np.ndarray) -> np.ndarray:
    return values if values.dtype in (np.int8, np.float32, np.float64) else values.astype(np.float64)


def group_starts(chunk: Chunk) -> np.ndarray:
    """int64: the rows of `chunk` where groups of equal qid begin (without qid: all), then the number of rows."""
    if chunk.qid is None:
        return np.arange(chunk.n_rows + 1)
    return np.concatenate(([0], np.flatnonzero(chunk.qid[1:] != chunk.qid[:-1]) + 1, [chunk.n_rows]))


def is_sparse(X: object) -> TypeGuard[csr_array]:
    """Whether `X` is a sparse array or matrix of SciPy, which is not imported to find out."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(X)


def check_csr(X: csr_array) -> None:
    """Raise BadInputError unless the arrays of X, a user's csr_array, are safe for kernels."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise BadInputError(f"X is not a well-formed sparse matrix: {error}") from error


def ranges(first: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first[i], first[i] + 1, …, lengths[i] numbers for each i; int64 (len(first) + 1,): where those of each begin, and their
    number)."""
    starts = np.append(0, np.cumsum(lengths))
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], lengths), starts


def take(chunk: Chunk, rows: np.ndarray) -> Chunk:
    """The rows `rows` of a chunk, in that order, as a copy; features, labels and weights only."""
    entries, indptr = ranges(chunk.indptr[rows], chunk.indptr[rows + 1] - chunk.indptr[rows])
    data, weight = (None if array is None else array[at] for array, at in ((chunk.data, entries), (chunk.weight, rows)))
    return Chunk(indptr, chunk.indices[entries], data, chunk.y[rows], None, weight)


def copied(chunk: Chunk) -> Chunk:
    """The same rows, copied."""
    return concatenate([chunk])


def concatenate(chunks: list[Chunk]) -> Chunk:
    """Consecutive rows copied into one chunk; values take the smallest type that holds all."""
    lengths = np.concatenate([np.diff(c.indptr) for c in chunks])
    data = None
    if any(c.data is not None for c in chunks):
        parts = [np.ones(c.nnz, np.int8) if c.data is None else c.data[c.indptr[0] : c.indptr[-1]] for c in chunks]
        data = np.concatenate(parts)

    def joined(arrays: list[np.ndarray | None]) -> np.ndarray | None:
        return None if arrays[0] is None else np.concatenate(cast("list[np.ndarray]", arrays))  # one has it as all have

    return Chunk(
        np.append(0, np.cumsum(lengths)),
        np.concatenate([c.indices[c.indptr[0] : c.indptr[-1]] for c in chunks]),
        data,
        np.concatenate([c.y for c in chunks]),
        joined([c.qid for c in chunks]),
        joined([c.weight for c in chunks]),
        chunks[0].first_row,
    )
