"""Scores of rows for K classes at once, sums of rows into K vectors, and the Crammer-Singer loss along a line.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); `W` and sums are float64 (D, K), the
K numbers of a feature side by side, so that an entry of a row touches one contiguous run; D = d, or d + 1 with the weights of the
constant feature `bias` last when `bias` is not 0. `target` (n) int is the class of each row, 0 … K − 1, whose label is one of the
K known ones (streamcut.oracles.classes_passes.targets). Scores `z`, `z_b` are float64 (n, K); row weights `u` float64 (n), or
None when all are 1.

The loss of a row is max_y (1[y ≠ t] + z_y − z_t), t its target; the rival is the y that attains it; of equals the target, else
the first.
"""

import numpy as np

from streamcut.compiled.bins import bin_of
from streamcut.compiler.jit import helper, inlined, kernel


@kernel
def scores(indptr, indices, data, W, bias, out):
    """out[i, k] = ⟨W[:, k], x_i⟩, added in the order of the features."""
    classes = W.shape[1]
    last = len(W) - 1
    for i in range(len(indptr) - 1):
        for k in range(classes):
            out[i, k] = bias * W[last, k] if bias != 0.0 else 0.0
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[t])
            value = 1.0 if data is None else np.float64(data[t])
            for k in range(classes):
                out[i, k] += value * W[j, k]


@kernel
def losses(target, z, out):
    """out[i] = the loss of row i at z; returns the first row with a score that is not finite, or −1."""
    bad = -1
    for i in range(len(z)):
        own = z[i, target[i]] - 1.0
        loss, total = 0.0, 0.0
        for k in range(z.shape[1]):
            total += z[i, k]
            if k != target[i]:
                loss = max(loss, z[i, k] - own)
        out[i] = loss
        if bad < 0 and not np.isfinite(total):
            bad = i
    return bad


@kernel
def rivals(target, z_b, z, kappa, out):
    """out[i] = the rival of row i at z_b + κ(z − z_b)."""
    for i in range(len(z)):
        t = target[i]
        best, rival = z_b[i, t] + kappa * (z[i, t] - z_b[i, t]) - 1.0, t
        for k in range(z.shape[1]):
            value = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
            if k != t and value > best:
                best, rival = value, k
        out[i] = rival


@kernel
def scatter(indptr, indices, data, target, rival, u, bias, rounder, out):
    """Adds u_i x_i to column rival[i] of `out` and subtracts it from column target[i], in place, where the two differ.

    Every term is rounded to the grid of `rounder` (streamcut.foundation.rounding.exact_rounder), so sums are exact in any order.
    """
    last = len(out) - 1
    for i in range(len(target)):
        t, r = np.uint64(target[i]), np.uint64(rival[i])
        if t == r:
            continue
        weight = 1.0 if u is None else u[i]
        if bias != 0.0:
            term = (weight * bias + rounder) - rounder
            out[last, r] += term
            out[last, t] -= term
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            term = ((weight if data is None else weight * data[p]) + rounder) - rounder
            out[j, r] += term
            out[j, t] -= term


@kernel
def step(target, z_b, z, k, out):
    """z_b += k (z − z_b) in place; out[i] = the loss of row i there."""
    for i in range(len(z)):
        t = target[i]
        for y in range(z.shape[1]):
            z_b[i, y] += k * (z[i, y] - z_b[i, y])
        own = z_b[i, t] - 1.0
        loss = 0.0
        for y in range(z.shape[1]):
            if y != t:
                loss = max(loss, z_b[i, y] - own)
        out[i] = loss


# Along z_b + k(z − z_b) a row costs max_y (c_y + k m_y): c_y = 1[y ≠ t] + z_b,y − z_b,t, m_y = (z − z_b)_y − (z − z_b)_t. The
# lines that attain the maximum follow each other by increasing slope. Every kernel walks them from k = 0, so that nested brackets
# see the same breakpoints to the last bit.


@inlined
def _line(y, t, z_b, z):
    """(c, m) of class y."""
    c = (z_b[y] - z_b[t]) + (0.0 if y == t else 1.0)
    return c, (z[y] - z_b[y]) - (z[t] - z_b[t])


@helper
def _first_line(t, z_b, z):
    """(c, m) of the line that attains the maximum just after k = 0."""
    c, m = 0.0, 0.0
    for y in range(len(z)):
        other, slope = _line(y, t, z_b, z)
        if other > c or (other == c and slope > m):
            c, m = other, slope
    return c, m


@helper
def _next_line(t, z_b, z, c, m, before):
    """(k, c, m) of the line that takes over from (c, m), k ≥ `before`; k = ∞ when none does."""
    k, next_c, next_m = np.inf, c, m
    for y in range(len(z)):
        other, slope = _line(y, t, z_b, z)
        if slope > m:
            at = (c - other) / (slope - m)
            if at < k or (at == k and slope > next_m):
                k, next_c, next_m = at, other, slope
    return max(k, before), next_c, next_m


@kernel
def slopes_at_zero(target, z_b, z, out):
    """out[i] = the right derivative of row i's loss at k = 0."""
    for i in range(len(z)):
        out[i] = _first_line(target[i], z_b[i], z[i])[1]


@kernel
def breakpoint_histogram(target, z_b, z, u, edges, jumps, counts):
    """Adds to bin j the jumps and the number of breakpoints in edges[j] ≤ k < edges[j + 1], in place."""
    bins = len(jumps)
    low, high = edges[0], edges[bins]
    scale = bins / (high - low)
    for i in range(len(z)):
        c, m = _first_line(target[i], z_b[i], z[i])
        k = 0.0
        while True:
            before = m
            k, c, m = _next_line(target[i], z_b[i], z[i], c, m, k)
            if k >= high:
                break
            if k >= low:
                j = bin_of(k, edges, scale)
                jumps[j] += (m - before) * (1.0 if u is None else u[i])
                counts[j] += 1


@kernel
def breakpoints_between(target, z_b, z, u, low, high, out_k, out_jump):
    """Writes the breakpoints with low ≤ k < high and their jumps; returns their number.

    A histogram counted them by the same comparisons with the same k, so all fit.
    """
    n = 0
    for i in range(len(z)):
        c, m = _first_line(target[i], z_b[i], z[i])
        k = 0.0
        while True:
            before = m
            k, c, m = _next_line(target[i], z_b[i], z[i], c, m, k)
            if k >= high:
                break
            if k >= low:
                out_k[n] = k
                out_jump[n] = (m - before) * (1.0 if u is None else u[i])
                n += 1
    return n
