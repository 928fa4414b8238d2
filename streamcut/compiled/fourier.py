"""Waves through rows: inner products with random frequencies, their cosines and sines, and frequencies made orthogonal."""

import numpy as np

from streamcut.compiler.jit import kernel


@kernel
def waves(indptr, indices, data, frequencies, scale, phases, out):
    """out[i] = scale · (cos ⟨ω_1, x_i⟩ … cos ⟨ω_h, x_i⟩, sin ⟨ω_1, x_i⟩ … sin ⟨ω_h, x_i⟩), float32.

    frequencies (d, h) float32, a row for each feature; `phases` (h,) float64 is a buffer. Sums go in the order of the features.
    """
    half = frequencies.shape[1]
    for i in range(len(indptr) - 1):
        for k in range(half):
            phases[k] = 0.0
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[t])
            value = 1.0 if data is None else np.float64(data[t])
            for k in range(half):
                phases[k] += value * frequencies[j, k]
        for k in range(half):
            out[i, k] = scale * np.cos(phases[k])
            out[i, half + k] = scale * np.sin(phases[k])


@kernel
def orthogonalise(Q):
    """Make the rows of Q (m, d), m ≤ d, orthonormal in place, in order (Gram and Schmidt, each row twice)."""
    m, d = Q.shape
    for i in range(m):
        for _ in range(2):
            for k in range(i):
                product = 0.0
                for j in range(d):
                    product += Q[i, j] * Q[k, j]
                for j in range(d):
                    Q[i, j] -= product * Q[k, j]
        square = 0.0
        for j in range(d):
            square += Q[i, j] * Q[i, j]
        length = np.sqrt(square)
        for j in range(d):
            Q[i, j] /= length
