"""Scores of K columns along the lines from their best points to the points scored last.

Row state: `z` and `z_b` (n, K), the arguments of the losses (streamcut.compiled.columns); column a is at places[a]. Sums are
compensated pairs, (A, 2) as (total, rounding lost), carried from call to call: the result does not depend on how rows are split.
"""

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.columns import is_left_out, target_of_pair
from streamcut.compiled.records import weight_of
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import kernel


@kernel
def at_zero(loss, y, columns, z_b):
    """z_b of columns whose best point is w = 0."""
    for i in range(len(y)):
        for a in range(len(columns.places)):
            z_b[i, columns.places[a]] = 0.0 - loss.offset(target_of_pair(columns.positive, y[i], a))


@kernel
def forget(loss, columns, codes):
    """Reset the shares in both halves of the codes of the columns."""
    for i in range(len(codes)):
        for a in range(len(columns.places)):
            codes[i, 0, columns.places[a]] = codes[i, 1, columns.places[a]] = loss.encode(0.0)


@kernel
def slopes(loss, y, u, fold, columns, z_b, z, k, out):
    """out (A, 2) += Σ u ℓ′Δ at z_b + k_a Δ, Δ = z − z_b: to the right of a kink, where Δ is not 0."""
    for i in range(len(y)):
        weight = weight_of(u, i)
        for a in range(len(k)):
            if is_left_out(columns.left_out, fold, i, a):
                continue
            at = columns.places[a]
            before = z_b[i, at]
            delta = z[i, at] - before
            here, target = before + k[a] * delta, target_of_pair(columns.positive, y[i], a)
            f = loss.dual(here, target)
            if delta < 0.0:
                for corner in range(loss.kinks()):
                    if here == loss.kink(corner):
                        f += 1.0
            out[a, 0], out[a, 1] = compensated(out[a, 0], out[a, 1], -f * delta * weight)


@kernel
def step(loss, y, u, fold, columns, z_b, z, k, out, steepest):
    """z_b += k_a (z − z_b) in place; out (A, 2) += Σ u ℓ there. `steepest` (A) is raised to the largest |share| there, for losses
    with unbounded shares."""
    for i in range(len(y)):
        weight = weight_of(u, i)
        for a in range(len(k)):
            at = columns.places[a]
            here = z_b[i, at] + k[a] * (z[i, at] - z_b[i, at])
            z_b[i, at] = here
            if is_left_out(columns.left_out, fold, i, a) or weight == 0.0:
                continue
            target = target_of_pair(columns.positive, y[i], a)
            value = loss.value(here, target)
            out[a, 0], out[a, 1] = compensated(out[a, 0], out[a, 1], value * weight)
            if loss.unbounded() and value != 0.0:
                steepest[a] = max(steepest[a], abs(loss.dual(here, target)))
