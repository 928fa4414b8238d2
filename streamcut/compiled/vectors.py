"""Dense vectors, added in a fixed order: BLAS splits sums by its number of threads, and certificates must not depend on it.

The soft threshold S(v, λ) of the elastic net moves v towards 0 by λ, feature by feature, and is 0 where it gets there; `l1` is λ,
or None: kernels are then compiled without thresholds.
"""

import numpy as np

from streamcut.compiler.jit import allocating, helper, inlined, kernel


@helper
def compensated(total, lost, term):
    """(total, lost) stands for the sum total + lost; the loss is found by Knuth's branch-free two-sum."""
    added = total + term
    taken = added - total
    error = (total - (added - taken)) + (term - taken)
    return added, lost + (error if np.isfinite(added) else 0.0)  # an infinite sum is infinite, regardless of what was lost


@kernel
def accumulate(values, sums):
    """sums += Σ values_i, a compensated pair."""
    total, lost = sums[0], sums[1]
    for value in values:
        total, lost = compensated(total, lost, value)
    sums[0], sums[1] = total, lost


@kernel
def dot(a, b):
    """⟨a, b⟩ with eight partial sums."""
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = len(a) // 8 * 8
    for i in range(0, whole, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for i in range(whole, len(a)):
        total += a[i] * b[i]
    return total


@kernel
def dots(rows, b, out):
    """out[t] = ⟨rows[t], b⟩ for a (T, D) matrix."""
    for t in range(len(rows)):
        out[t] = dot(rows[t], b)


@kernel
def combine(rows, coefficients, out):
    """out = Σ_t coefficients[t] · rows[t]; rows with coefficient 0 are not read."""
    out[:] = 0.0
    for t in range(len(coefficients)):
        c = coefficients[t]
        if c != 0.0:
            for i in range(len(out)):
                out[i] += c * rows[t, i]


@kernel
def move(a, b, k):
    """a += k (b − a) in place; returns (‖a‖² after it)."""
    for i in range(len(a)):
        a[i] += k * (b[i] - a[i])
    return dot(a, a)


@kernel
def line(a, b):
    """(‖b − a‖², ⟨a, b − a⟩): the quadratic part of ½‖a + k(b − a)‖²."""
    square, product = 0.0, 0.0
    for i in range(len(a)):
        d = b[i] - a[i]
        square += d * d
        product += a[i] * d
    return square, product


@kernel
def spread(w, width, magnitudes):
    """Σ_j magnitudes[j] · max_k |w[j · width + k]|: the largest spread of scores by w, over all rows together."""
    total = 0.0
    for j in range(len(magnitudes)):
        largest = 0.0
        for k in range(j * width, (j + 1) * width):
            largest = max(largest, abs(w[k]))
        total += magnitudes[j] * largest
    return total


@kernel
def add(a, b):
    """a += b in place."""
    for i in range(len(a)):
        a[i] += b[i]


@kernel
def add_moments(values, sums):
    """sums[0] += Σ v, sums[1] += Σ v², one after the other."""
    total, square = sums[0], sums[1]
    for t in range(len(values)):
        value = np.float64(values[t])
        total += value
        square += value * value
    sums[0], sums[1] = total, square


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
