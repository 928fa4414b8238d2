"""Kernels approximated by features, whose inner products are near its values: rows in, dense float32 rows out.

FourierMap: waves (Rahimi & Recht 2007), independent of the data. exp(−γ‖x − x′‖²) is the mean of cos ⟨ω, x − x′⟩ over frequencies
ω ~ N(0, 2γ I). With h of them the features of x are (cos ⟨ω_k, x⟩, sin ⟨ω_k, x⟩) / √h: their inner products have that mean, and a
row has length 1. Cotter, Shalev-Shwartz & Srebro (2012, appendix) compare the stochastic batch perceptron with such features.

NystroemMap: rows projected on the span of landmarks (Williams & Seeger 2001; Fine & Scheinberg 2001). Given landmarks s_1 … s_r
with K = (k(s_i, s_j)) = L Lᵀ, the features of x are L⁻¹ (k(s_1, x), …, k(s_r, x)): their inner products are those of the
projections of φ(x) on the span of φ(s_1) … φ(s_r). Yu & Joachims (2008, section 6.4) compare with this. Landmarks that depend on
others, to 1e-8 of the largest k(s, s), are left out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from streamcut.compiled import feature_maps
from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk, take
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors

_DEPENDENT = 1e-8
_AT_ONCE = 1024  # rows whose kernel values are in memory


class FeatureMap(ABC):
    """Features whose inner products approximate `kernel`, for rows with `dimension` features.

    kind      what a model file calls it
    identity  what the map was drawn from, in JSON types: the same data and identity give the same map
    """

    kind: ClassVar[str]
    kernel: Kernel
    dimension: int
    identity: dict[str, object]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of the output rows."""

    @abstractmethod
    def features(self, chunk: Chunk) -> np.ndarray:
        """float32 (n, n_features) of the rows of a chunk."""

    @property
    @abstractmethod
    def memory(self) -> tuple[str, int, int]:
        """(name of its data, their bytes in a model file, which is built in memory; bytes per worker)."""

    def describe(self) -> dict[str, object]:
        """What `streamcut info` shows of it."""
        return {"kernel": self.kernel.as_dict(), "map": self.kind, "map_features": self.n_features, **self.identity}

    def mapped(self, chunk: Chunk) -> Chunk:
        """The same rows with these features instead."""
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


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """`frequencies`, float32 (dimension, h), one per column."""

    kernel: Kernel
    dimension: int
    frequencies: np.ndarray
    identity: dict[str, object] = field(default_factory=dict)

    kind: ClassVar[str] = "fourier"

    @classmethod
    def drawn(cls, kernel: Kernel, dimension: int, features: int, seed: int) -> Self:
        """A map to `features` features, an even number; raises UsageError for unsupported kernels or sizes."""
        if kernel.name != "rbf":
            raise UsageError(f"fourier: supports only the rbf kernel, not {kernel.name}; use nystroem")
        rng = np.random.default_rng(seed)
        half, scale = features // 2, math.sqrt(2.0 * kernel.gamma)
        drawn = np.empty((dimension, half), np.float32)
        for j in range(dimension):  # a row at a time keeps float64 temporaries small
            drawn[j] = scale * rng.standard_normal(half)
        return cls(kernel, dimension, drawn, {"features": features, "seed": seed})

    @property
    def n_features(self) -> int:
        return 2 * self.frequencies.shape[1]

    @property
    def memory(self) -> tuple[str, int, int]:
        return f"{self.n_features:,} waves of {self.dimension:,} features", self.frequencies.nbytes, 8 * self.n_features

    def features(self, chunk: Chunk) -> np.ndarray:
        half = self.frequencies.shape[1]
        out = np.empty((chunk.n_rows, 2 * half), np.float32)
        feature_maps.waves(chunk.indptr, chunk.indices, chunk.data, self.frequencies, 1.0 / math.sqrt(half), np.empty(half), out)
        return out


@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """`landmarks` are r rows of `dimension` features, `projection` (r, r) float64 is L⁻ᵀ, an upper triangle."""

    kernel: Kernel
    landmarks: Chunk
    dimension: int
    projection: np.ndarray
    identity: dict[str, object] = field(default_factory=dict)
    _vectors: Vectors = field(init=False, repr=False)

    kind: ClassVar[str] = "nystroem"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_vectors", Vectors(self.kernel.centred_on(self.landmarks), self.landmarks, self.dimension))

    @classmethod
    def of(cls, kernel: Kernel, rows: Chunk, dimension: int, identity: dict[str, object] | None = None) -> Self:
        """The map of these rows. Raises BadInputError if the kernel is 0 on all of them."""
        n = rows.n_rows
        K = np.empty((n, n))
        for i, j, values in Vectors(kernel.centred_on(rows), rows, dimension).values(rows):
            K[i : i + len(values), j : j + values.shape[1]] = values
        L, pivots = np.zeros((n, n)), np.empty(n, np.int64)
        rank = feature_maps.pivoted_cholesky(K, _DEPENDENT * K.diagonal().max(), L, pivots)
        if rank == 0:
            raise BadInputError("nystroem: the kernel is 0 between all sampled rows; use another seed or kernel")
        projection = np.zeros((rank, rank))
        feature_maps.inverse_transposed(np.ascontiguousarray(L[:rank, :rank]), projection)
        return cls(kernel, take(rows, pivots[:rank]), dimension, projection, identity or {})

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
            for i, j, block in self._vectors.values(some):
                values[i : i + len(block), j : j + block.shape[1]] = block
            feature_maps.times_triangle(values[: some.n_rows], self.projection, scratch, out[first : first + some.n_rows])
        return out
