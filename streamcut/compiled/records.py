"""Records that kernels take instead of long lists of arguments: NamedTuples, which Numba unboxes and caches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import inlined
from streamcut.compiler.numba_parts import fetch

AHEAD = 2  # rows whose entries are prefetched
_LINE = 64  # bytes of a cache line


class Rows(NamedTuple):
    """CSR rows as in streamcut.foundation.chunk (`data` None where every value is 1), with data of each row: y, its
    label, number or class; u, its weight, None where all are 1."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    y: np.ndarray
    u: np.ndarray | None


class Entries(NamedTuple):
    """The entries of Rows or CachedRows, which are one type to helpers that need no more."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None


class ChainWeights(NamedTuple):
    """Weights of a linear chain: of features in classes (D, K), and of class k after class j (K, K)."""

    features: np.ndarray
    transitions: np.ndarray


class Held(NamedTuple):
    """The mixtures of labellings that sequences hold.

    `shares` (n, K): how often a row has a class; `edges` (S, K, K): how often a class follows another, less the same for the
    targets; `losses` (S) are their mean numbers of wrong rows.
    """

    shares: np.ndarray
    edges: np.ndarray
    losses: np.ndarray


class ChainBuffers(NamedTuple):
    """Buffers for steps of sequences: moves (D, K); seen int64 (D + 1), 0 at first; touched int32 (D); z (n, K), and back, path,
    excess as in viterbi.best_paths."""

    moves: np.ndarray
    seen: np.ndarray
    touched: np.ndarray
    z: np.ndarray
    back: np.ndarray
    path: np.ndarray
    excess: np.ndarray


class CachedRows(NamedTuple):
    """Copies of rows: CSR, row numbers, priorities, u_i, ‖x_i‖², shares (n, A) of the columns, targets or classes."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    number: np.ndarray
    key: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    share: np.ndarray
    target: np.ndarray

    def part(self, rows: slice) -> CachedRows:
        """These rows; indices and data stay whole."""
        by_row = [array[rows] for array in self[3:]]
        return CachedRows(self.indptr[rows.start : rows.stop + 1], self.indices, self.data, *by_row)


@inlined
def entries_of(rows):
    """The Entries of Rows or CachedRows."""
    return Entries(rows.indptr, rows.indices, rows.data)


@inlined
def entry(data, t):
    """Value t of CSR rows."""
    return 1.0 if data is None else np.float64(data[t])


@inlined
def fetch_row(rows, i):
    """Prefetch the entries of CSR row i, which are needed soon: rows in random order would each stall."""
    first, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    _fetch_between(rows.indices, first, stop)
    _fetch_between(rows.data, first, stop)


@inlined
def fetch_cached(rows, i):
    """Prefetch row i of CachedRows: its entries, and what a sweep reads of it."""
    fetch_row(entries_of(rows), i)
    fetch(rows.target, i)
    fetch(rows.share[i], 0)
    fetch(rows.weight, i)
    fetch(rows.square, i)


@inlined
def _fetch_between(array, first, stop):
    if array is not None:
        for t in range(first, stop, np.uint64(_LINE // array.itemsize)):
            fetch(array, t)


@inlined
def put(array, at, value):
    """array[at] = value, if there is an array."""
    if array is not None:
        array[at] = value


@inlined
def weight_of(u, i):
    """u_i."""
    return 1.0 if u is None else u[i]


@inlined
def target_of(target, i):
    """y_i if it is kept; losses that do not use it get 0."""
    return 0.0 if target is None else target[i]
