"""The stochastic batch perceptron as the paper's Algorithm 1 has it, on a dense kernel matrix, one row at a time."""

from __future__ import annotations

import numpy as np


def level(c, volume: float) -> tuple[float, int]:
    """(γ, numbers covered): Σ max(0, γ − c_i) = volume."""
    c = np.sort(c)
    k, surface = 1, c[0]
    while k < len(c) and volume > k * (c[k] - surface):
        volume -= k * (c[k] - surface)
        surface = c[k]
        k += 1
    return surface + volume / k, k


def levels(c, signs, volume, bias):
    """(γ₊, γ₋, rows covered): without bias both γ; with one, of all splits of their sum that cover as many of each the middle."""
    if not bias:
        gamma, k = level(c, volume)
        return gamma, gamma, k
    positive, negative = np.sort(c[signs > 0]), np.sort(c[signs < 0])
    n = min(len(positive), len(negative))
    total, k = level(positive[:n] + negative[:n], volume)
    least = [positive[k - 1], negative[k - 1]]
    most = [own[k] if k < len(own) else np.inf for own in (positive, negative)]
    up = (max(least[0], total - most[1]) + min(most[0], total - least[1])) / 2
    return up, total - up, k


def average(K, signs, nu, steps, random, *, bias=False):
    """(ᾱ, c̄) after `steps` steps; draws are those of the solver: a coin for the class, rows just at the surface, one under it."""
    m = len(signs)
    Q = K * signs * signs[:, None]
    largest = np.diag(K).max()
    alpha, c, alpha_sum, c_sum = (np.zeros(m) for _ in range(4))
    for t in range(1, steps + 1):
        rate = 1.0 / np.sqrt(t * largest)
        up, down, covered = levels(c, signs, m * nu, bias)
        own, surface = np.arange(m), up
        if bias and random.integers(2):
            own = own[signs > 0]
        elif bias:
            own, surface = own[signs < 0], down
        under = own[c[own] < surface]
        if len(under) < covered:
            ties = np.flatnonzero(c[own] == surface)
            under = np.append(under, own[random.choice(ties, covered - len(under), replace=False)])
        i = under[random.integers(len(under), size=1)[0]]
        alpha[i] += rate
        c = c + rate * Q[i]
        norm = np.sqrt(alpha @ c)
        if norm > 1.0:
            alpha, c = alpha / norm, c / norm
        alpha_sum += alpha
        c_sum += c
    return alpha_sum / steps, c_sum / steps
