"""Losses of single rows: from scores to the argument of the loss, coefficients of a cut, sums, steps along a line.

Of row i with score s_i the loss is ℓ(z_i; y_i), z_i = σ_i s_i − t_i: the margin, or a residual (streamcut.losses.loss). `u` holds
row weights (float64) or is None when all are 1; `target` the y_i kept in the row state for losses that need them, otherwise None.

Sums over rows go to `sums`, float64 (total, rounding lost): compensated (Neumaier), so that the number and order of rows affect
only the last digits, and carried from call to call, so that the split of rows does not matter. sums[2] is the largest |share|
seen, for losses with unbounded shares.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.bins import bin_of
from streamcut.compiled.records import target_of, weight_of
from streamcut.compiled.shares import left, rounded
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import inlined, kernel


@kernel
def row_weights(loss, y, weight, positive_weight, rounder, out):
    """out[i] = weight_i (1 if None), times `positive_weight` for the positive label; returns Σ out, exact on a grid."""
    total = 0.0
    for i in range(len(y)):
        u = weight_of(weight, i)
        out[i] = u * positive_weight if loss.sign(y[i]) > 0.0 else u
        total += rounded(out[i], rounder)
    return total


@kernel
def at_zero(loss, y, z):
    """z[i] of a row with score 0."""
    for i in range(len(y)):
        z[i] = 0.0 - loss.offset(y[i])


@kernel
def values(loss, y, scores, out):
    """out[i] = ℓ of a row with target y[i] and this score."""
    for i in range(len(y)):
        out[i] = loss.value(loss.sign(y[i]) * scores[i] - loss.offset(y[i]), y[i])


@kernel
def duals(loss, y, scores, out, constants, sizes):
    """out[i] = −ℓ′ with the sign of the label, constants[i]: the loss at any score s′ is at least −out[i] s′ + constants[i].

    sizes[i]: the sum of the absolute values that the constant is made of.
    """
    for i in range(len(y)):
        sign = loss.sign(y[i])
        f = loss.dual(sign * scores[i] - loss.offset(y[i]), y[i])
        out[i] = sign * f
        constants[i] = loss.constant(f, y[i])
        sizes[i] = loss.size(f, y[i]) if loss.sized() else abs(constants[i])


@kernel
def target_sizes(loss, y, out):
    """out[i] = the size of what row i's target subtracts from its score."""
    for i in range(len(y)):
        out[i] = loss.target_size(y[i])


@kernel
def target_sums(loss, y, u, constants, rounders, out):
    """out[0] += Σ u target_size, out[1] += Σ u ℓ at score 0, out[2 + k] += Σ u ℓ at score constants[k], exact on grids: the first
    sum on that of rounders[0], the others on that of rounders[1]."""
    sizes, rounder = rounders
    for i in range(len(y)):
        weight, t = weight_of(u, i), loss.offset(y[i])
        out[0] += rounded(weight * loss.target_size(y[i]), sizes)
        out[1] += rounded(weight * loss.value(-t, y[i]), rounder)
        for k in range(len(constants)):
            out[2 + k] += rounded(weight * loss.value(constants[k] - t, y[i]), rounder)


@inlined
def _with(loss, z, y, weight, total, lost, steepest):
    """(total, lost, steepest) of `sums` after adding a row."""
    value = loss.value(z, y)
    total, lost = compensated(total, lost, value * weight if weight != 0.0 else 0.0)  # a loss may be infinite
    if loss.unbounded() and value != 0.0 and weight != 0.0:
        steepest = max(steepest, abs(loss.dual(z, y)))
    return total, lost, steepest


@kernel
def margins(loss, y, u, z, sums):
    """Turns scores into z in place; sums += Σ u_i ℓ(z_i). Returns the index of the first score that is not finite, or −1."""
    total, lost, steepest = sums[0], sums[1], sums[2]
    bad = -1
    for i in range(len(z)):
        z[i] = loss.sign(y[i]) * z[i] - loss.offset(y[i])
        total, lost, steepest = _with(loss, z[i], y[i], weight_of(u, i), total, lost, steepest)
        if bad < 0 and not np.isfinite(z[i]):
            bad = i
    sums[0], sums[1], sums[2] = total, lost, steepest
    return bad


@kernel
def cut_coefficients(loss, y, z_b, z, kappa, u, grids, out, sums):
    """Cut at z_c = z_b + κ(z − z_b): fills out[i] = −u_i σ_i f_i, and adds to sums (4), as dual._change_sum does; neither over M.

    Sums are exact on the grids of weights (streamcut.foundation.rounding.Grids).
    """
    for i in range(len(y)):
        weight = weight_of(u, i)
        f = loss.limited(loss.dual(z_b[i] + kappa * (z[i] - z_b[i]), y[i]), grids.limit, weight)
        out[i] = -loss.sign(y[i]) * (weight * f)
        if f != 0.0:
            term = weight * loss.constant(f, y[i])
            kept = rounded(term, grids.weight)
            sums[0] += kept
            sums[1] += left(term, kept, grids.fine_weight)
            if loss.sized():
                sums[2] += rounded(weight * abs(f), grids.weight)
                sums[3] += rounded(weight * loss.size(f, y[i]), grids.weight)


@kernel
def step(loss, z_b, z, k, target, u, sums):
    """z_b += k (z − z_b) in place; sums += Σ u_i ℓ(z_b,i) after it."""
    total, lost, steepest = sums[0], sums[1], sums[2]
    for i in range(len(z)):
        z_b[i] += k * (z[i] - z_b[i])
        total, lost, steepest = _with(loss, z_b[i], target_of(target, i), weight_of(u, i), total, lost, steepest)
    sums[0], sums[1], sums[2] = total, lost, steepest


@kernel
def slopes(loss, z_b, z, k, target, u, slope, curvature):
    """At every z_b + k[j]Δ, Δ = z − z_b: slope[j] += Σ u_i ℓ′Δ_i, a pair as `sums`, and curvature[j] += Σ u_i ℓ″Δ_i²."""
    for j in range(len(k)):
        first, first_lost = slope[j, 0], slope[j, 1]
        second = curvature[j]
        for i in range(len(z)):
            delta, y, weight = z[i] - z_b[i], target_of(target, i), weight_of(u, i)
            here = z_b[i] + k[j] * delta
            f = loss.dual(here, y)
            first, first_lost = compensated(first, first_lost, -f * delta * weight)
            second += loss.curvature(f, here, y) * delta * delta * weight  # it only guides the line search
        slope[j, 0], slope[j, 1] = first, first_lost
        curvature[j] = second


# Along w_b + k(w − w_b) the slope of a piecewise linear loss jumps by u|Δ| where z_b + kΔ is at a kink: at k = (kink − z_b) / Δ.
# Whether that is above 0 and in a bracket is nearly random from row to row, so the code is branch-free.


@kernel
def slope_at_zero(loss, z_b, z, u, sums):
    """sums += Σ u_i ℓ′ Δ_i just after k = 0: the right derivative of a piecewise linear loss there."""
    total, lost = sums[0], sums[1]
    for i in range(len(z)):
        delta = z[i] - z_b[i]
        f = loss.dual(z_b[i], 0.0)  # at a kink: to the right of it
        for j in range(loss.kinks()):
            if z_b[i] == loss.kink(j) and delta < 0.0:
                f += 1.0
        if f != 0.0:
            total, lost = compensated(total, lost, -delta * f * weight_of(u, i))
    sums[0], sums[1] = total, lost


@inlined
def _breakpoint(kink, z_b, z, low, high):
    """(k, whether low ≤ k < high and 0 < k): z_b + k(z − z_b) is at the kink. k is infinite or NaN where Δ = 0."""
    k = (kink - z_b) / (z - z_b)
    return k, (k > 0.0) & (k >= low) & (k < high)


@kernel
def breakpoint_histogram(loss, z_b, z, u, edges, jumps, counts):
    """Adds to bin j the jumps and the number of breakpoints in edges[j] ≤ k < edges[j + 1], in place."""
    bins = len(jumps)
    low, high = edges[0], edges[bins]
    scale = bins / (high - low)
    for i in range(len(z)):
        for corner in range(loss.kinks()):
            k, inside = _breakpoint(loss.kink(corner), z_b[i], z[i], low, high)
            if inside:
                j = bin_of(k, edges, scale)
                jumps[j] += abs(z[i] - z_b[i]) * weight_of(u, i)
                counts[j] += 1


@kernel
def breakpoints_between(loss, z_b, z, u, low, high, out_k, out_jump):
    """Writes the breakpoints with low ≤ k < high and their jumps; returns their number n (known from a histogram).

    Place n + 1 of both arrays is also written.
    """
    n = 0
    for i in range(len(z)):
        for corner in range(loss.kinks()):
            out_k[n], inside = _breakpoint(loss.kink(corner), z_b[i], z[i], low, high)
            out_jump[n] = abs(z[i] - z_b[i]) * weight_of(u, i)
            n += inside
    return n
