"""Cholesky factors with pivots, and products with triangles, in an order of sums that no library chooses."""

import numpy as np

from streamcut.compiler.jit import allocating, kernel


@allocating
def pivoted_cholesky(K, tolerance, L, pivots):
    """L (n, n) lower triangular with L Lᵀ = K[pivots][:, pivots], as far as pivots stay above `tolerance`; returns their number.

    Each pivot is the largest that is left, the first of equals. `pivots` (n,) int64 becomes a permutation; L is zeros at first.
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
    """out[k, j] = (L⁻¹)[j, k], for lower triangular L (n, n); `out` is zeros at first."""
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
    """out[i, j] = Σ_{k ≤ j} values[i, k] A[k, j], k in order, as float32; `scratch` (n,) is room."""
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
