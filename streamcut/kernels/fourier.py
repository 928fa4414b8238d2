"""The Gaussian kernel approximated by waves (Rahimi & Recht 2007), independent of the data.

exp(−γ‖x − x′‖²) is the mean of cos ⟨ω, x − x′⟩ over frequencies ω ~ N(0, 2γ I). With h of them the features of x are
(cos ⟨ω_k, x⟩, sin ⟨ω_k, x⟩) / √h: their inner products have that mean, and a row has length 1.
Cotter, Shalev-Shwartz & Srebro (2012, appendix) compare the stochastic batch perceptron with such features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.compiled import feature_maps
from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.feature_map import FeatureMap
from streamcut.kernels.kernel import Kernel


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """`frequencies`, float32 (dimension, h), one per column."""

    kernel: Kernel
    dimension: int
    frequencies: np.ndarray
    identity: dict[str, Any] = field(default_factory=dict)

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
