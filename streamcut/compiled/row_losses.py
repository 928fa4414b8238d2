"""Losses of single rows: from scores to the argument of the loss, coefficients of a cut, sums, steps along a line.

Of row i with score s_i the loss is ℓ(z_i; y_i), z_i = σ_i s_i − t_i: the margin, or a residual (streamcut.losses.loss). `u` holds
row weights (float64) or is None when all are 1; `target` the y_i kept in the row state for losses that need them, otherwise None.

Sums over rows go to `sums`, float64 (total, rounding lost): compensated (Neumaier), so that the number and order of rows affect
only the last digits, and carried from call to call, so that the split of rows does not matter. sums[2] is the largest |share|
seen, for losses with unbounded shares.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.linear import left, rounded
from streamcut.compiled.records import target_of, weight_of
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


@inlined
def _add_share(loss, f, y, weight, grids, sums):
    """Adds a row with share f to the sums of a cut, as in `cut_coefficients`."""
    if f != 0.0:
        term = weight * loss.constant(f, y)
        kept = rounded(term, grids.weight)
        sums[0] += kept
        sums[1] += left(term, kept, grids.fine_weight)
        if loss.sized():
            sums[2] += rounded(weight * abs(f), grids.weight)
            sums[3] += rounded(weight * loss.size(f, y), grids.weight)


@kernel
def cuts_of_sides(loss, y, score, u, grids, out, sums):
    """The cuts of the rows that pull up and of those that pull down, where all have this score: out (2, n) gets −u σ f, 0 for
    those of the other side, sums (2, 4) the sums of each cut, as in `cut_coefficients`."""
    for i in range(len(y)):
        weight, sign = weight_of(u, i), loss.sign(y[i])
        f = loss.limited(loss.dual(sign * score - loss.offset(y[i]), y[i]), grids.limit, weight)
        side = 0 if sign * f > 0.0 else 1
        out[side, i], out[1 - side, i] = -sign * (weight * f), 0.0
        _add_share(loss, f, y[i], weight, grids, sums[side])


@kernel
def cut_coefficients(loss, y, z_b, z, kappa, u, grids, out, sums):
    """Cut at z_c = z_b + κ(z − z_b): fills out[i] = −u_i σ_i f_i, and adds to sums (4); neither over M.

    sums: [Σ u constant, its remainder after the coarse grid, Σ u |f|, Σ u size], the last two for its rounding. All are exact on
    the grids of weights (streamcut.foundation.rounding.Grids).
    """
    for i in range(len(y)):
        weight = weight_of(u, i)
        f = loss.limited(loss.dual(z_b[i] + kappa * (z[i] - z_b[i]), y[i]), grids.limit, weight)
        out[i] = -loss.sign(y[i]) * (weight * f)
        _add_share(loss, f, y[i], weight, grids, sums)


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
            if delta < 0.0:  # to the right of a kink
                for kink in range(loss.kinks()):
                    if here == loss.kink(kink):
                        f += 1.0
            first, first_lost = compensated(first, first_lost, -f * delta * weight)
            second += loss.curvature(f, here, y) * delta * delta * weight  # it only guides Newton steps to an intercept
        slope[j, 0], slope[j, 1] = first, first_lost
        curvature[j] = second
