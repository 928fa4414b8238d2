"""A kernel approximated by features: rows projected on the span of landmarks (Williams & Seeger 2001; Fine & Scheinberg 2001).

Given landmarks s_1 … s_r with K = (k(s_i, s_j)) = L Lᵀ, the features of x are L⁻¹ (k(s_1, x), …, k(s_r, x)): their inner products
are those of the projections of φ(x) on the span of φ(s_1) … φ(s_r). Yu & Joachims (2008, section 6.4) compare with this.
Landmarks that depend on others, to 1e-8 of the largest k(s, s), are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.compiled import feature_maps
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk, concatenate
from streamcut.kernels.feature_map import FeatureMap
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors

_DEPENDENT = 1e-8
_AT_ONCE = 1024  # rows whose kernel values are in memory


@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """`landmarks` are r rows of `dimension` features, `projection` (r, r) float64 is L⁻ᵀ, an upper triangle."""

    kernel: Kernel
    landmarks: Chunk
    dimension: int
    projection: np.ndarray
    identity: dict[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "nystroem"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_vectors", Vectors(self.kernel.centred_on(self.landmarks), self.landmarks, self.dimension))

    @classmethod
    def of(cls, kernel: Kernel, rows: list[Chunk], dimension: int, identity: dict[str, Any] | None = None) -> Self:
        """The map of these rows, each a chunk. Raises BadInputError if the kernel is 0 on all of them."""
        everything = concatenate(rows)
        n = len(rows)
        K = np.empty((n, n))
        for i, j, values in Vectors(kernel.centred_on(everything), everything, dimension).values(everything):
            K[i : i + len(values), j : j + values.shape[1]] = values
        L, pivots = np.zeros((n, n)), np.empty(n, np.int64)
        rank = feature_maps.pivoted_cholesky(K, _DEPENDENT * K.diagonal().max(), L, pivots)
        if rank == 0:
            raise BadInputError("nystroem: the kernel is 0 between all sampled rows; use another seed or kernel")
        projection = np.zeros((rank, rank))
        feature_maps.inverse_transposed(np.ascontiguousarray(L[:rank, :rank]), projection)
        return cls(kernel, concatenate([rows[i] for i in pivots[:rank].tolist()]), dimension, projection, identity or {})

    @property
    def n_features(self) -> int:
        return len(self.projection)

    @property
    def memory(self) -> tuple[str, int, int]:
        r = self.n_features
        return f"{r:,} landmarks", 8 * r * r + 16 * self.landmarks.nnz, 8 * _AT_ONCE * r

    def features(self, chunk: Chunk) -> np.ndarray:
        r = self.n_features
        out, scratch = np.empty((chunk.n_rows, r), np.float32), np.empty(r)
        values = np.empty((min(chunk.n_rows, _AT_ONCE), r))
        for first in range(0, chunk.n_rows, _AT_ONCE):
            some = chunk.rows(first, min(first + _AT_ONCE, chunk.n_rows))
            for i, j, block in self._vectors.values(some):  # type: ignore[attr-defined]
                values[i : i + len(block), j : j + block.shape[1]] = block
            feature_maps.times_triangle(values[: some.n_rows], self.projection, scratch, out[first : first + some.n_rows])
        return out
