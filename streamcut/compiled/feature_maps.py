"""Features of kernels, with sums in a fixed order, independent of any library.

For Nyström's method: pivoted Cholesky factors, and products with triangles. For Fourier features: inner products of rows with
random frequencies, their cosines and sines.
"""

import numpy as np

from streamcut.compiler.jit import allocating, kernel


@allocating
def pivoted_cholesky(K, tolerance, L, pivots):
    """L (n, n) lower triangular with L Lᵀ = K[pivots][:, pivots], as far as pivots stay above `tolerance`; returns their number.

    Each pivot is the largest remaining one, the first among equals. `pivots` (n,) int64 becomes a permutation; L is initially
    zero.
    """
    n = len(K)
    left = np.empty(n)
    for i in range(n):
        left[i], pivots[i] = K[i, i], i
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if left[pivots[i]] > left[pivots[best]]:
                best = i
        if not left[pivots[best]] > tolerance:
            return j
        pivots[j], pivots[best] = pivots[best], pivots[j]
        for k in range(j):
            L[j, k], L[best, k] = L[best, k], L[j, k]
        root = np.sqrt(left[pivots[j]])
        L[j, j] = root
        for i in range(j + 1, n):
            value = K[pivots[i], pivots[j]]
            for k in range(j):
                value -= L[i, k] * L[j, k]
            L[i, j] = value / root
            left[pivots[i]] -= L[i, j] * L[i, j]
    return n


@kernel
def inverse_transposed(L, out):
    """out[k, j] = (L⁻¹)[j, k], for lower triangular L (n, n); `out` is initially zero."""
    n = len(L)
    for k in range(n):
        out[k, k] = 1.0 / L[k, k]
        for j in range(k + 1, n):
            total = 0.0
            for i in range(k, j):
                total += L[j, i] * out[k, i]
            out[k, j] = -total / L[j, j]


@kernel
def times_triangle(values, A, scratch, out):
    """out[i, j] = Σ_{k ≤ j} values[i, k] A[k, j], k in order, as float32; `scratch` (n,)."""
    n = len(A)
    for i in range(len(values)):
        for j in range(n):
            scratch[j] = 0.0
        for k in range(n):
            value = values[i, k]
            for j in range(k, n):
                scratch[j] += value * A[k, j]
        for j in range(n):
            out[i, j] = scratch[j]


@kernel
def waves(indptr, indices, data, frequencies, scale, phases, out):
    """out[i] = scale · (cos ⟨ω_1, x_i⟩ … cos ⟨ω_h, x_i⟩, sin ⟨ω_1, x_i⟩ … sin ⟨ω_h, x_i⟩), float32.

    frequencies (d, h) float32, a row for each feature; `phases` (h,) float64 is a buffer. Sums are in the order of the features.
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
