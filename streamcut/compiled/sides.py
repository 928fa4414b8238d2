"""Rows in two halves: those whose shares pull their scores up, and those whose shares pull them down."""

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.records import weight_of
from streamcut.compiled.shares import left, rounded
from streamcut.compiler.jit import kernel


@kernel
def coefficients(loss, y, z, u, grids, out, sums):
    """The cuts of the rows that pull up and of those that pull down, at z: out (2, n) gets −u σ f, sums (2, 4) the sums of each
    cut, as in row_losses.cut_coefficients; 0 for rows of the other half."""
    for i in range(len(y)):
        weight = weight_of(u, i)
        f = loss.limited(loss.dual(z[i], y[i]), grids.limit, weight)
        pull = loss.sign(y[i]) * f
        side = 0 if pull > 0.0 else 1
        out[side, i] = -loss.sign(y[i]) * (weight * f)
        out[1 - side, i] = 0.0
        if f != 0.0:
            term = weight * loss.constant(f, y[i])
            kept = rounded(term, grids.weight)
            sums[side, 0] += kept
            sums[side, 1] += left(term, kept, grids.fine_weight)
            if loss.sized():
                sums[side, 2] += rounded(weight * abs(f), grids.weight)
                sums[side, 3] += rounded(weight * loss.size(f, y[i]), grids.weight)


@kernel
def equal_scores(loss, y, score, z):
    """z[i] of a row with this score."""
    for i in range(len(y)):
        z[i] = loss.sign(y[i]) * score - loss.offset(y[i])
