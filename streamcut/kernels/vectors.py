"""Kernel values of many rows with a few, which are held dense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from streamcut.compiled.kernel_rows import add_sums, kernel_rows
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel

_TILE = 8 << 20  # numbers of a tile (64 MiB)
_VALUES = 1 << 16  # kernel values at once: they stay in the second cache level


class Vectors:
    """Rows s_j that others are compared with by `kernel`, dense and feature-major, in tiles of `tile` numbers, 8 rows at least.

    kept  in memory, all of them; otherwise each is made when its turn comes, for every chunk anew
    """

    def __init__(self, kernel: Kernel, rows: Chunk, dimension: int, *, tile: int = _TILE, kept: bool = True) -> None:
        self._kernel, self._rows, self._dimension = kernel, kernel.moved(rows), dimension
        self._width = min(max(tile // max(dimension, 1), 8), max(rows.n_rows, 1))
        self._kept = list(self._made()) if kept else None

    def _made(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """(first row, V, squared norms) of each tile."""
        rows, entries = self._rows, np.diff(self._rows.indptr)
        for start in range(0, rows.n_rows, self._width):
            stop = min(start + self._width, rows.n_rows)
            V = np.zeros((self._dimension, stop - start))
            part = slice(rows.indptr[start], rows.indptr[stop])
            data = 1.0 if rows.data is None else rows.data[part]
            V[rows.indices[part], np.repeat(np.arange(stop - start), entries[start:stop])] = data
            yield start, V, np.einsum("ij,ij->j", V, V)

    @property
    def _tiles(self) -> Iterable[tuple[int, np.ndarray, np.ndarray]]:
        return self._made() if self._kept is None else self._kept

    def values(self, chunk: Chunk) -> Iterator[tuple[int, int, np.ndarray]]:
        """(i, j, k(x_i…, s_j…) float64) in blocks that together are all values of the chunk's rows; valid until the next."""
        chunk = self._kernel.moved(chunk)
        for start, V, squares in self._tiles:
            width = len(squares)
            at_once = max(1, _VALUES // width)
            scratch, room = np.empty(width), np.empty((min(at_once, chunk.n_rows), width))
            for first in range(0, chunk.n_rows, at_once):
                some = chunk.rows(first, min(first + at_once, chunk.n_rows))
                block = room[: some.n_rows]
                kernel_rows(some.indptr, some.indices, some.data, V, squares, self._kernel.compiled, scratch, block)
                yield first, start, block

    def add_sums(self, chunk: Chunk, factors: np.ndarray, out: np.ndarray) -> None:
        """out[i] += Σ_j factors[j] k(x_i, s_j) for the chunk's rows, float64 (n,), in place."""
        chunk, parameters = self._kernel.moved(chunk), self._kernel.compiled
        for start, V, squares in self._tiles:
            p, k, some = np.empty(len(squares)), np.empty(len(squares)), factors[start : start + len(squares)]
            add_sums(chunk.indptr, chunk.indices, chunk.data, V, squares, some, parameters, p, k, out)
