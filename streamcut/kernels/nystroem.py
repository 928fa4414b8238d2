"""A kernel approximated by features: rows projected on the span of a few (Williams & Seeger 2001; Fine & Scheinberg 2001).

Given landmarks s_1 … s_r with K = (k(s_i, s_j)) = L Lᵀ, the features of x are L⁻¹ (k(s_1, x), …, k(s_r, x)): their inner products
are those of the projections of φ(x) on the span of φ(s_1) … φ(s_r). Yu & Joachims (2008, section 6.4) compare with this.
Landmarks that depend on others, to 1e-8 of the largest k(s, s), add nothing and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamcut.chunk import Chunk, concatenate
from streamcut.compiled import nystroem
from streamcut.errors import BadInputError
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors

_DEPENDENT = 1e-8
_AT_ONCE = 1024  # rows whose kernel values are held


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """`landmarks` are r rows of `dimension` features, `projection` (r, r) float64 is L⁻ᵀ, an upper triangle."""

    kernel: Kernel
    landmarks: Chunk
    dimension: int
    projection: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "_vectors", Vectors(self.landmarks, self.dimension))

    @classmethod
    def of(cls, kernel: Kernel, rows: list[Chunk], dimension: int) -> Self:
        """The map of these rows, each a chunk. Raises BadInputError when all of them are 0 to the kernel."""
        everything = concatenate(rows)
        n = len(rows)
        K = np.empty((n, n))
        for i, j, values in Vectors(everything, dimension).values(kernel, everything):
            K[i : i + len(values), j : j + values.shape[1]] = values
        L, pivots = np.zeros((n, n)), np.empty(n, np.int64)
        rank = nystroem.pivoted_cholesky(K, _DEPENDENT * K.diagonal().max(), L, pivots)
        if rank == 0:
            raise BadInputError("nystroem: the kernel is 0 between all rows that were drawn; take another seed or kernel")
        projection = np.zeros((rank, rank))
        nystroem.inverse_transposed(np.ascontiguousarray(L[:rank, :rank]), projection)
        return cls(kernel, concatenate([rows[i] for i in pivots[:rank].tolist()]), dimension, projection)

    @property
    def n_features(self) -> int:
        """Of the rows that come out."""
        return len(self.projection)

    def features(self, chunk: Chunk) -> np.ndarray:
        """float32 (n, n_features) of the rows of a chunk."""
        r = self.n_features
        out, scratch = np.empty((chunk.n_rows, r), np.float32), np.empty(r)
        values = np.empty((min(chunk.n_rows, _AT_ONCE), r))
        for first in range(0, chunk.n_rows, _AT_ONCE):
            some = chunk.rows(first, min(first + _AT_ONCE, chunk.n_rows))
            for i, j, block in self._vectors.values(self.kernel, some):  # type: ignore[attr-defined]
                values[i : i + len(block), j : j + block.shape[1]] = block
            nystroem.times_triangle(values[: some.n_rows], self.projection, scratch, out[first : first + some.n_rows])
        return out

    def mapped(self, chunk: Chunk) -> Chunk:
        """The same rows with these features in place of their own."""
        n, r = chunk.n_rows, self.n_features
        return Chunk(
            np.arange(n + 1, dtype=np.int64) * r,
            np.tile(np.arange(r, dtype=np.int32), n),
            self.features(chunk).ravel(),
            chunk.y,
            chunk.qid,
            chunk.weight,
            chunk.first_row,
        )
