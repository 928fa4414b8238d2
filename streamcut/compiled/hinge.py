"""The hinge loss on margins z_i = y_i s_i: coefficients of a cut, and the line search between two points.

`u` holds row weights (float64) or is None when all are 1. Sums over rows go to `sums`, a float64 pair (total, rounding lost):
compensated (Neumaier), so that neither the number of rows nor their order shows beyond the last digits, and carried from call
to call, so that it does not matter how rows are split into calls.
"""

import numpy as np

from streamcut.compiled.shares import left
from streamcut.jit import kernel


@kernel
def _add(total, lost, term):
    """Neumaier's step: (total, lost) stands for the sum total + lost."""
    added = total + term
    lost += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
    return added, lost


@kernel
def row_weights(y, positive, weight, positive_weight, rounder, out):
    """out[i] = weight_i (1 if None), times `positive_weight` for the label `positive`; returns Σ out, exact on a grid."""
    total = 0.0
    for i in range(len(y)):
        u = 1.0 if weight is None else weight[i]
        out[i] = u * positive_weight if y[i] == positive else u
        total += (out[i] + rounder) - rounder
    return total


@kernel
def margins(y, positive, u, z, sums):
    """Turns scores into margins in place: z_i = ±s_i, + for the label `positive`; sums += Σ u_i max(0, 1 − z_i).

    Returns the index of the first score that is not finite, or −1.
    """
    total, lost = sums[0], sums[1]
    bad = -1
    for i in range(len(z)):
        if y[i] != positive:
            z[i] = -z[i]
        if z[i] < 1.0:
            total, lost = _add(total, lost, (1.0 - z[i]) * (1.0 if u is None else u[i]))
        if bad < 0 and not np.isfinite(z[i]):
            bad = i
    sums[0], sums[1] = total, lost
    return bad


@kernel
def cut_coefficients(y, positive, z_b, z, kappa, u, grids, out, sums):
    """Cut at z_c = z_b + κ(z − z_b): fills out[i] = −u_i y_i 1[z_c < 1]; sums (2) += Σ u_i 1[z_c < 1]. Neither is divided by M.

    The sum is exact on the grids of weights (streamcut.rounding.Grids), what the coarse one leaves in sums[1].
    """
    for i in range(len(y)):
        weight = 1.0 if u is None else u[i]
        active = z_b[i] + kappa * (z[i] - z_b[i]) < 1.0
        out[i] = 0.0 if not active else -weight if y[i] == positive else weight
        if active:
            kept = (weight + grids.weight) - grids.weight
            sums[0] += kept
            sums[1] += left(weight, kept, grids.fine_weight)


@kernel
def step(z_b, z, k, u, sums):
    """z_b += k (z − z_b) in place; sums += Σ u_i max(0, 1 − z_b,i) after it."""
    total, lost = sums[0], sums[1]
    for i in range(len(z)):
        z_b[i] += k * (z[i] - z_b[i])
        if z_b[i] < 1.0:
            total, lost = _add(total, lost, (1.0 - z_b[i]) * (1.0 if u is None else u[i]))
    sums[0], sums[1] = total, lost


# Along w_b + k(w − w_b) row i costs u_i max(0, 1 − z_b − kΔ_i), Δ = z − z_b. Its slope jumps by u|Δ| at k_i = (1 − z_b)/Δ.


@kernel
def slope_at_zero(z_b, z, u, sums):
    """sums += Σ −u_i Δ_i over the rows that are active just after k = 0: the right derivative of the loss there."""
    total, lost = sums[0], sums[1]
    for i in range(len(z)):
        delta = z[i] - z_b[i]
        room = 1.0 - z_b[i]
        if room > 0.0 or (room == 0.0 and delta < 0.0):
            total, lost = _add(total, lost, -delta * (1.0 if u is None else u[i]))
    sums[0], sums[1] = total, lost


@kernel
def _breakpoint(z_b, z):
    """k at which the row's slope jumps, or −1 when it never does for k > 0."""
    delta = z - z_b
    room = 1.0 - z_b
    if (delta > 0.0 and room > 0.0) or (delta < 0.0 and room < 0.0):
        return room / delta
    return -1.0


@kernel
def breakpoint_histogram(z_b, z, u, edges, jumps, counts):
    """Adds to bin j the jumps and the number of breakpoints in edges[j] ≤ k < edges[j + 1], in place.

    The formula only guesses the bin; comparing with the edges decides, so nested histograms never lose or count a row twice.
    """
    bins = len(jumps)
    low, high = edges[0], edges[bins]
    scale = bins / (high - low)
    for i in range(len(z)):
        k = _breakpoint(z_b[i], z[i])
        if k > 0.0 and k >= low and k < high:
            j = min(int((k - low) * scale), bins - 1)
            while k < edges[j]:
                j -= 1
            while k >= edges[j + 1]:
                j += 1
            jumps[j] += abs(z[i] - z_b[i]) * (1.0 if u is None else u[i])
            counts[j] += 1


@kernel
def breakpoints_between(z_b, z, u, low, high, out_k, out_jump):
    """Writes the breakpoints with low ≤ k < high and their jumps; returns their number (the caller knows it from a histogram)."""
    n = 0
    for i in range(len(z)):
        k = _breakpoint(z_b[i], z[i])
        if k > 0.0 and k >= low and k < high:
            out_k[n] = k
            out_jump[n] = abs(z[i] - z_b[i]) * (1.0 if u is None else u[i])
            n += 1
    return n


@kernel
def accumulate(values, sums):
    """sums += Σ values_i."""
    total, lost = sums[0], sums[1]
    for value in values:
        total, lost = _add(total, lost, value)
    sums[0], sums[1] = total, lost
