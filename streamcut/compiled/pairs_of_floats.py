"""Sums in pairs of float64, which hold 106 bits (Dekker 1971; Ogita, Rump & Oishi 2005)."""

from streamcut.compiler.jit import helper, kernel

_SPLIT = 2.0**27 + 1.0


@helper
def product(a, b):
    """(p, e) with p + e = ab exactly, as long as nothing over- or underflows."""
    p = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@helper
def added(high, low, more, less):
    """(high, low) + (more, less), normalised."""
    s = high + more
    t = s - high
    e = (high - (s - t)) + (more - t) + (low + less)
    total = s + e
    return total, e - (total - s)


@kernel
def dot(a, b):
    """⟨a, b⟩ in two float64."""
    high, low = 0.0, 0.0
    for i in range(len(a)):
        p, e = product(a[i], b[i])
        high, low = added(high, low, p, e)
    return high, low


@kernel
def combine(rows, high, low, out):
    """out (D,) = Σ_t (high_t + low_t) · rows[t] of a (T, D) matrix, rounded once at the end; rows with 0 are not read."""
    for i in range(len(out)):
        total, rest = 0.0, 0.0
        for t in range(len(high)):
            if high[t] != 0.0:
                p, e = product(high[t], rows[t, i])
                total, rest = added(total, rest, p, e + low[t] * rows[t, i])
        out[i] = total + rest


@kernel
def absolute_dots(rows, b, out):
    """out[t] = Σ_i |rows[t, i] b_i| for a (T, D) matrix."""
    for t in range(len(rows)):
        total = 0.0
        for i in range(len(b)):
            total += abs(rows[t, i] * b[i])
        out[t] = total
