"""A point near rows far from the origin, from which a Gaussian kernel computes distances.

‖x − x′‖² comes from ‖x‖² + ‖x′‖² − 2⟨x, x′⟩, and for rows at a distance R from the origin whole units of it are lost once R² ε is
one. It does not change when a point is subtracted from both. So the mean of a feature present in nearly all rows is subtracted
first, and rows stay sparse: if mean² > 64 variance, at most one row in 65 lacks that feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamcut.compiled import kernel_rows
from streamcut.foundation.chunk import Chunk

_FAR = 64.0


@dataclass(frozen=True, slots=True, eq=False)
class Centre:
    """`value` float64 (k,) is subtracted in the features `index` int64 (k,), increasing."""

    index: np.ndarray
    value: np.ndarray

    def moved(self, chunk: Chunk) -> Chunk:
        """The same rows less this point, a float64 copy; values that become 0 are dropped."""
        n, most = chunk.n_rows, chunk.nnz + chunk.n_rows * len(self.index)
        indptr, indices, data = np.zeros(n + 1, np.int64), np.empty(most, chunk.indices.dtype), np.empty(most)
        kernel_rows.subtract(chunk.indptr, chunk.indices, chunk.data, self.index, self.value, indptr, indices, data)
        return replace(chunk, indptr=indptr, indices=indices[: indptr[-1]], data=data[: indptr[-1]])

    def moved_there(self, vectors: np.ndarray) -> np.ndarray:
        """Dense rows, float64 (n, d), less this point; a copy."""
        out = vectors.copy()
        out[:, self.index] -= self.value
        return out

    def moved_back(self, vectors: np.ndarray) -> np.ndarray:
        """Moved dense rows at their original place; a copy."""
        out = vectors.copy()
        out[:, self.index] += self.value
        return out


def centre_of(rows: int, index: np.ndarray, total: np.ndarray, squares: np.ndarray) -> Centre | None:
    """The centre of `rows` rows whose features `index` have these Σ x and Σ x²; None if no feature is far from 0."""
    mean = total / max(rows, 1)
    variance = squares / max(rows, 1) - mean * mean
    far = (mean * mean > _FAR * variance) & np.isfinite(mean) & (mean != 0.0)
    return Centre(index[far].astype(np.int64), mean[far]) if far.any() else None


def centre_of_rows(chunk: Chunk) -> Centre | None:
    """The centre of the rows of a chunk."""
    here = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
    values = np.ones(chunk.nnz) if chunk.data is None else chunk.data[here].astype(np.float64)
    index, place = np.unique(chunk.indices[here], return_inverse=True)
    return centre_of(chunk.n_rows, index, np.bincount(place, values), np.bincount(place, values * values))
