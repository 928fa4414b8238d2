"""Kernel values of many rows with a few dense ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamcut.compiled.kernel_rows import add_sums, kernel_rows
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel

_TILE = 8 << 20  # numbers of a tile (64 MiB)
_FEWEST = 8  # least rows of a tile
_BLOCK = 1 << 16
WIDE = 1 << 16  # with more features, a tile has only those of its rows


class _Tile(NamedTuple):
    """Rows from number `start` on: V feature-major and their squared norms. V has a row for each of `features` (increasing), plus
    one row of zeros for all others; if `features` is None, a row for every feature."""

    start: int
    V: np.ndarray
    squares: np.ndarray
    features: np.ndarray | None

    def placed(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk with the rows of V as features."""
        if self.features is None:
            return chunk
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])  # they may be part of larger arrays
        indices, most = chunk.indices[first:last], len(self.features)
        columns = np.searchsorted(self.features, indices).astype(np.int32)
        if most:
            columns[self.features[np.minimum(columns, most - 1)] != indices] = most
        data = None if chunk.data is None else chunk.data[first:last]
        return replace(chunk, indptr=chunk.indptr - first, indices=columns, data=data)


def dense_bytes(rows: float, entries: float, dimension: int) -> int:
    """Bytes of `Vectors` of `rows` rows of `entries` entries, all kept."""
    return int(8 * rows * (min(dimension, rows * entries + 1) if dimension > WIDE else dimension))


class Vectors:
    """Rows s_j for kernel values with other rows, dense and feature-major, in tiles of `tile` numbers, at least 8 rows.

    block    kernel values at a time, by default as many as stay in L2 cache
    squares  ‖s_j‖² of the moved rows, float64 (n,), for a caller who needs them to the last bit
    kept     whether all tiles stay in memory; otherwise each is rebuilt for every chunk
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Chunk,
        dimension: int,
        *,
        tile: int = _TILE,
        block: int = _BLOCK,
        squares: np.ndarray | None = None,
        kept: bool = True,
    ) -> None:
        self._kernel, self._rows, self._dimension, self._tile = kernel, kernel.moved(rows), dimension, tile
        self._block, self._squares = block, squares
        self._kept = list(self._made()) if kept else None

    def _made(self) -> Iterator[_Tile]:
        rows, start = self._rows, 0
        while start < rows.n_rows:
            stop = self._end_of_tile(start)
            counts, part = np.diff(rows.indptr[start : stop + 1]), slice(rows.indptr[start], rows.indptr[stop])
            features, columns = None, rows.indices[part]
            if self._dimension > WIDE:
                features, columns = np.unique(columns, return_inverse=True)
            V = np.zeros((self._dimension if features is None else len(features) + 1, stop - start))
            V[columns, np.repeat(np.arange(stop - start), counts)] = 1.0 if rows.data is None else rows.data[part]
            squares = np.einsum("ij,ij->j", V, V) if self._squares is None else self._squares[start:stop]
            yield _Tile(start, V, squares, features)
            start = stop

    def _end_of_tile(self, start: int) -> int:
        """The number of the first row of the next tile."""
        count = np.arange(1, self._rows.n_rows - start + 1)
        height: np.ndarray | int = self._dimension
        if self._dimension > WIDE:
            height = np.minimum(height, self._rows.indptr[start + 1 :] - self._rows.indptr[start] + 1)
        fit = int(np.count_nonzero(count * height <= self._tile))
        return min(start + max(fit, _FEWEST), self._rows.n_rows)

    @property
    def _tiles(self) -> Iterable[_Tile]:
        return self._made() if self._kept is None else self._kept

    def values(self, chunk: Chunk) -> Iterator[tuple[int, int, np.ndarray]]:
        """(i, j, k(x_i…, s_j…) float64) in blocks that together cover the chunk's rows; each valid until the next."""
        moved = self._kernel.moved(chunk)
        for tile in self._tiles:
            chunk, (start, V, squares, _) = tile.placed(moved), tile
            width = len(squares)
            at_once = max(1, self._block // width)
            scratch, room = np.empty(width), np.empty((min(at_once, chunk.n_rows), width))
            for first in range(0, chunk.n_rows, at_once):
                some = chunk.rows(first, min(first + at_once, chunk.n_rows))
                block = room[: some.n_rows]
                kernel_rows(some.indptr, some.indices, some.data, V, squares, self._kernel.compiled, scratch, block)
                yield first, start, block

    def add_sums(self, chunk: Chunk, factors: np.ndarray, out: np.ndarray) -> None:
        """out[i] += Σ_j factors[j] k(x_i, s_j) for the chunk's rows, float64 (n,), in place."""
        moved, parameters = self._kernel.moved(chunk), self._kernel.compiled
        for tile in self._tiles:
            chunk, (start, V, squares, _) = tile.placed(moved), tile
            p, k, some = np.empty(len(squares)), np.empty(len(squares)), factors[start : start + len(squares)]
            add_sums(chunk.indptr, chunk.indices, chunk.data, V, squares, some, parameters, p, k, out)
