"""The soft threshold S(v, λ) of the elastic net, feature by feature: v moved towards 0 by λ, and 0 where it gets there.

`l1` is λ, or None: kernels are then compiled without thresholds.
"""

import numpy as np

from streamcut.compiled.vectors import compensated, dot
from streamcut.compiler.jit import allocating, inlined, kernel

_BLOCK = 256  # features whose products are added together


@inlined
def shrunk(v, l1):
    """S(v, l1)."""
    if l1 is None:
        return v
    return max(v - l1, 0.0) + min(v + l1, 0.0)


@kernel
def shrink(v, l1, out):
    """out = S(v, l1); they may be the same array."""
    for j in range(len(v)):
        out[j] = shrunk(v[j], l1)


@kernel
def absolute_sum(w):
    """Σ |w_j|, compensated."""
    total, lost = 0.0, 0.0
    for j in range(len(w)):
        total, lost = compensated(total, lost, abs(w[j]))
    return total + lost


@kernel
def slope_along(v, delta, l1, k):
    """(⟨S(v + kδ), δ⟩, Σ δ_j² of the features that are not 0 there): slope and curvature of ½‖S(v + kδ)‖² in k."""
    slope, curvature = 0.0, 0.0
    for j in range(len(v)):
        w = shrunk(v[j] + k * delta[j], l1)
        if w != 0.0:
            slope += w * delta[j]
            curvature += delta[j] * delta[j]
    return slope, curvature


@allocating
def active_gram(rows, w, gram):
    """gram (T, T) = Σ_j rows[:, j] rows[:, j]ᵀ over the features with w_j ≠ 0, of a (T, D) matrix."""
    T = len(rows)
    block, count = np.empty((T, _BLOCK)), 0
    gram[:] = 0.0
    for j in range(len(w)):
        if w[j] != 0.0:
            for t in range(T):
                block[t, count] = rows[t, j]
            count += 1
        if count == _BLOCK or (count > 0 and j == len(w) - 1):
            for s in range(T):
                for t in range(s + 1):
                    gram[s, t] += dot(block[s, :count], block[t, :count])
            count = 0
    for s in range(T):
        for t in range(s):
            gram[t, s] = gram[s, t]
