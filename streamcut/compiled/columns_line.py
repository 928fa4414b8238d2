"""Scores of K columns along the lines from their best points to the points scored last.

Row state: `z` and `z_b` (n, K), the arguments of the losses (streamcut.compiled.columns); column a is at places[a]. Sums are
compensated pairs, (A, 2) as (total, rounding lost), carried from call to call: the result does not depend on how rows are split.
"""

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.columns import is_left_out
from streamcut.compiled.records import weight_of
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import kernel

_ROWS = 64  # of which the numbers stay in the first cache level while columns take turns


@kernel
def at_zero(loss, y, columns, z_b):
    """z_b of columns whose best point is w = 0."""
    for i in range(len(y)):
        for a in range(len(columns.places)):
            z_b[i, columns.places[a]] = columns.group.z_at_zero(loss, y[i], columns, a)


@kernel
def forget(columns, codes):
    """Reset the shares in both versions of the codes of the columns."""
    for i in range(len(codes)):
        for a in range(len(columns.places)):
            codes[i, 0, columns.places[a]] = codes[i, 1, columns.places[a]] = 0


@kernel
def slopes(loss, y, u, fold, columns, z_b, z, k, out):
    """out (P, 2) += Σ u ℓ′Δ at z_b + k Δ, Δ = z − z_b, for every problem: to the right of a kink, where Δ is not 0."""
    for first in range(0, len(y), _ROWS):
        for a in range(len(k)):
            total, lost = out[a, 0], out[a, 1]
            for i in range(first, min(first + _ROWS, len(y))):
                if not is_left_out(columns.left_out, fold, i, a):
                    found = columns.group.slope_of(loss, y[i], columns, a, z_b[i], z[i], k[a])
                    total, lost = compensated(total, lost, found * weight_of(u, i))
            out[a, 0], out[a, 1] = total, lost


@kernel
def step(loss, y, u, fold, columns, z_b, z, k, out, steepest):
    """z_b += k (z − z_b) in place; out (P, 2) += Σ u ℓ there. `steepest` (P) is raised to the largest |share| there, for losses
    with unbounded shares."""
    for first in range(0, len(y), _ROWS):
        for a in range(len(k)):
            total, lost, most = out[a, 0], out[a, 1], steepest[a]
            for i in range(first, min(first + _ROWS, len(y))):
                weight = weight_of(u, i)
                value, slope = columns.group.step_along(loss, y[i], columns, a, z_b[i], z[i], k[a])
                if not is_left_out(columns.left_out, fold, i, a) and weight != 0.0:
                    total, lost = compensated(total, lost, value * weight)
                    most = max(most, slope)
            out[a, 0], out[a, 1], steepest[a] = total, lost, most
