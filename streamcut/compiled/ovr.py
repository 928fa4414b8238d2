"""One class against the rest, for several classes at once: margins, cuts and line searches of A binary losses.

Conventions as in streamcut.compiled.multiclass. `loss` is one of margins (streamcut.losses.loss). `active` (A) are the classes
in training: column a of `z` (n, A or more) is the margin of a row against class active[a], ±score, + for rows of it. `z_b`
(n, K) has a column for every class. What is summed over rows by the caller goes to `out` (A, n), one class after the other.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.records import entry, weight_of
from streamcut.compiled.shares import rounded
from streamcut.jit import inlined, kernel


@inlined
def add_constant(loss, sums, column, weight, f, sign, times, grids):
    """Adds `times` what share f of a row adds to the constant of a cut, sums (1 or 3, columns), and to what its rounding is
    measured by: Σ u |f| and Σ u size, of losses for which these are not the constant itself."""
    sums[0, column] += times * rounded(weight * loss.constant(f, sign), grids.weight)
    if loss.sized():
        sums[1, column] += times * rounded(weight * abs(f), grids.weight)
        sums[2, column] += times * rounded(weight * loss.size(f, sign), grids.weight)


@kernel
def cut(loss, rows, active, scores, z_b, kappa, bias, grids, z, sums, touched, coefficient):
    """Turns scores (n, A) into margins z, and adds each class's cut at z_b + κ_a (z − z_b) to column a of sums.cuts (D, A).

    rows.y are the numbers of their classes. Terms are rounded to `grids` (streamcut.rounding). Constants are added to sums.b
    (1 or 3, A). Room to work in: touched (A) integers, coefficient (A). Returns the first row with a score that is not finite,
    or −1.
    """
    out, vector, bad = sums.cuts, grids.vector, -1
    last = len(out) - 1
    for i in range(len(rows.y)):
        weight = weight_of(rows.u, i)
        total, count = 0.0, 0
        for a in range(len(active)):
            total += scores[i, a]
            sign = 1.0 if rows.y[i] == active[a] else -1.0
            z[i, a] = sign * scores[i, a]
            before = z_b[i, active[a]]
            f = loss.limited(loss.dual(before + kappa[a] * (z[i, a] - before), sign), grids.limit, weight)
            if f != 0.0:
                touched[count], coefficient[count] = a, -sign * (weight * f)
                add_constant(loss, sums.b, a, weight, f, sign, 1.0, grids)
                count += 1
        if bad < 0 and not np.isfinite(total):
            bad = i
        if count == 0:
            continue
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            j = np.uint64(rows.indices[p])
            value = entry(rows.data, p)
            for c in range(count):
                out[j, touched[c]] += (coefficient[c] * value + vector) - vector
        if bias != 0.0:
            for c in range(count):
                out[last, touched[c]] += (coefficient[c] * bias + vector) - vector
    return bad


@kernel
def step(loss, active, z_b, z, k, out, steepest):
    """z_b += k_a (z − z_b) in place; out[a, i] = the loss after it. `steepest` (A) rises to the largest share there, of losses
    whose shares have no bounds."""
    for i in range(len(z)):
        for a in range(len(active)):
            c = active[a]
            z_b[i, c] += k[a] * (z[i, a] - z_b[i, c])
            out[a, i] = loss.value(z_b[i, c], 1.0)
            if loss.unbounded():
                steepest[a] = max(steepest[a], abs(loss.dual(z_b[i, c], 1.0)))


@kernel
def slopes(loss, active, z_b, z, k, out, curvature):
    """out[a, i], curvature[a, i] = slope and curvature of row i's smooth loss against class active[a] at k_a."""
    for i in range(len(z)):
        for a in range(len(active)):
            before = z_b[i, active[a]]
            delta = z[i, a] - before
            here = before + k[a] * delta
            out[a, i] = -loss.dual(here, 1.0) * delta
            curvature[a, i] = loss.curvature(here, 1.0) * delta * delta


# Along a line the slope of a piecewise linear loss jumps by u|Δ| where z_b + kΔ is at a kink.


@kernel
def slopes_at_zero(loss, active, z_b, z, out):
    """out[a, i] = the right derivative of row i's loss against class active[a] at k = 0."""
    for i in range(len(z)):
        for a in range(len(active)):
            before = z_b[i, active[a]]
            delta = z[i, a] - before
            f = loss.dual(before, 1.0)  # at a kink: to the right of it
            for corner in range(loss.kinks()):
                if before == loss.kink(corner) and delta < 0.0:
                    f += 1.0
            out[a, i] = -delta * f


@kernel
def breakpoint_histograms(loss, active, z_b, z, u, low, width, jumps):
    """Adds to jumps[a, j] those of the breakpoints with low_a + j width_a ≤ k < low_a + (j + 1) width_a, in place."""
    bins = jumps.shape[1]
    for i in range(len(z)):
        weight = weight_of(u, i)
        for a in range(len(active)):
            delta = z[i, a] - z_b[i, active[a]]
            for corner in range(loss.kinks()):
                k = (loss.kink(corner) - z_b[i, active[a]]) / delta  # infinite or no number where nothing moves
                j = (k - low[a]) / width[a]
                if (k > 0.0) & (j >= 0.0) & (j < bins):  # as good as random from row to row: one branch, not four
                    jumps[a, int(j)] += abs(delta) * weight
