"""One class against the rest, for several classes at once: margins, cuts and line searches of A binary hinge losses.

Conventions as in streamcut.compiled.multiclass. `active` (A) are classes in training; column a of `z` (n, A or more) is the
margin of a row against class active[a], ±score, + for rows of that class. `z_b` (n, K) has a column for every class. What is
summed over rows by the caller goes to `out` (A, n), one class after the other.
"""

import numpy as np

from streamcut.compiled.records import entry, weight_of
from streamcut.jit import kernel


@kernel
def cut(rows, active, scores, z_b, kappa, bias, grids, z, sums, wrong, coefficient):
    """Turns scores (n, A) into margins z, and adds each class's cut at z_b + κ_a (z − z_b) to column a of sums.cuts (D, A).

    rows.y are the numbers of their classes. Terms are rounded to `grids` (streamcut.rounding). Σ u 1[z_c < 1] is added to sums.b
    (A). Room to work in: wrong (A) integers, coefficient (A). Returns the first row with a score that is not finite, or −1.
    """
    out, vector, scalar, bad = sums.cuts, grids.vector, grids.weight, -1
    last = len(out) - 1
    for i in range(len(rows.y)):
        weight = weight_of(rows.u, i)
        total, count = 0.0, 0
        for a in range(len(active)):
            total += scores[i, a]
            sign = 1.0 if rows.y[i] == active[a] else -1.0
            z[i, a] = sign * scores[i, a]
            before = z_b[i, active[a]]
            if before + kappa[a] * (z[i, a] - before) < 1.0:
                wrong[count], coefficient[count] = a, -sign * weight
                sums.b[a] += (weight + scalar) - scalar
                count += 1
        if bad < 0 and not np.isfinite(total):
            bad = i
        if count == 0:
            continue
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            j = np.uint64(rows.indices[p])
            value = entry(rows.data, p)
            for c in range(count):
                out[j, wrong[c]] += (coefficient[c] * value + vector) - vector
        if bias != 0.0:
            for c in range(count):
                out[last, wrong[c]] += (coefficient[c] * bias + vector) - vector
    return bad


@kernel
def step(active, z_b, z, k, out):
    """z_b += k_a (z − z_b) in place; out[a, i] = max(0, 1 − z_b) after it."""
    for i in range(len(z)):
        for a in range(len(active)):
            c = active[a]
            z_b[i, c] += k[a] * (z[i, a] - z_b[i, c])
            out[a, i] = max(0.0, 1.0 - z_b[i, c])


@kernel
def slopes_at_zero(active, z_b, z, out):
    """out[a, i] = the right derivative of row i's loss against class active[a] at k = 0."""
    for i in range(len(z)):
        for a in range(len(active)):
            delta = z[i, a] - z_b[i, active[a]]
            room = 1.0 - z_b[i, active[a]]
            out[a, i] = -delta if room > 0.0 or (room == 0.0 and delta < 0.0) else 0.0


@kernel
def breakpoint_histograms(active, z_b, z, u, low, width, jumps):
    """Adds to jumps[a, j] those of the breakpoints with low_a + j width_a ≤ k < low_a + (j + 1) width_a, in place."""
    bins = jumps.shape[1]
    for i in range(len(z)):
        weight = 1.0 if u is None else u[i]
        for a in range(len(active)):
            delta = z[i, a] - z_b[i, active[a]]
            room = 1.0 - z_b[i, active[a]]
            if (delta > 0.0 and room > 0.0) or (delta < 0.0 and room < 0.0):
                j = (room / delta - low[a]) / width[a]
                if j >= 0.0 and j < bins:
                    jumps[a, int(j)] += abs(delta) * weight
