"""Dense vectors, added in a fixed order: BLAS splits sums by its number of threads, and certificates must not depend on it."""

import numpy as np

from streamcut.compiler.jit import helper, kernel


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
