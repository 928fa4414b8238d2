"""The dual of the kernel SVM, by plain steps on a dense kernel matrix until nothing moves."""

from __future__ import annotations

import numpy as np


def solve(K, signs, upper, *, bias: bool, tolerance: float = 1e-10, steps: int = 200_000):
    """α: the most violating pair (Keerthi et al. 2001), or row by row in turn without a bias."""
    n = len(signs)
    Q = K * signs * signs[:, None]
    alpha, gradient = np.zeros(n), np.full(n, -1.0)
    for step in range(steps):
        if not bias:
            i = step % n
            after = min(max(alpha[i] - gradient[i] / max(Q[i, i], 1e-12), 0.0), upper[i])
            gradient += (after - alpha[i]) * Q[i]
            alpha[i] = after
            move = np.where(
                alpha <= 0.0, np.minimum(gradient, 0.0), np.where(alpha >= upper, np.maximum(gradient, 0.0), gradient)
            )
            if i == n - 1 and np.abs(move).max() < tolerance:
                break
            continue
        value = -signs * gradient
        grows = np.where(signs > 0, alpha < upper, alpha > 0.0)
        falls = np.where(signs > 0, alpha > 0.0, alpha < upper)
        i = int(np.argmax(np.where(grows, value, -np.inf)))
        j = int(np.argmin(np.where(falls, value, np.inf)))
        if not grows.any() or not falls.any() or value[i] - value[j] < tolerance:
            break
        length = (value[i] - value[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        length = min(length, upper[i] - alpha[i] if signs[i] > 0 else alpha[i])
        length = min(length, alpha[j] if signs[j] > 0 else upper[j] - alpha[j])
        alpha[i] += signs[i] * length
        alpha[j] -= signs[j] * length
        gradient += length * (signs[i] * Q[i] - signs[j] * Q[j])
    return alpha


def objective(K, signs, alpha) -> float:
    """Σ α_i − ½ Σ α_i α_j y_i y_j k(x_i, x_j)."""
    return float(alpha.sum() - 0.5 * (alpha * signs) @ K @ (alpha * signs))
