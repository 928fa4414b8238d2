"""Base of kernel approximations by features: rows in, dense float32 rows out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel


class FeatureMap(ABC):
    """Features whose inner products approximate `kernel`, for rows with `dimension` features.

    kind      what a model file calls it
    identity  what the map was drawn from, in JSON types: the same data and identity give the same map
    """

    kind: ClassVar[str]
    kernel: Kernel
    dimension: int
    identity: dict[str, Any]

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
