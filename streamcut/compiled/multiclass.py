"""Joint losses of K classes (streamcut.losses.joint) over rows: scores, losses, rivals.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); `W` and sums are float64 (D, K), the
K numbers of a feature side by side, so that an entry of a row touches one contiguous run; D = d, or d + 1 with the weights of the
constant feature `bias` last when `bias` is not 0. `target` (n) int is the class of each row, 0 … K − 1, whose label is one of the
K known ones (streamcut.oracles.row_passes.targets). Scores `z` are float64 (n, K).

A loss that is not smooth is max_y (margin(y, t) + z_y − z_t), t the row's target; the rival is the y that attains it; of equals
the target, else the first.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiler.jit import kernel


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
def losses(loss, target, z, out):
    """out[i] = the loss of row i at z."""
    for i in range(len(z)):
        out[i] = loss.value(z[i], target[i])


@kernel
def rivals(loss, target, z, out):
    """out[i] = the rival of row i at z, of a loss that is not smooth."""
    for i in range(len(z)):
        t = target[i]
        best, rival = z[i, t], t
        for k in range(z.shape[1]):
            value = z[i, k] + loss.margin(k, t)
            if k != t and value > best:
                best, rival = value, k
        out[i] = rival


@kernel
def scatter(indptr, indices, data, target, rival, bias, rounder, out):
    """Adds x_i to column rival[i] of `out` and subtracts it from column target[i], in place, where the two differ.

    Every term is rounded to the grid of `rounder` (streamcut.foundation.rounding.exact_rounder), so sums are exact in any order.
    """
    last = len(out) - 1
    for i in range(len(target)):
        t, r = np.uint64(target[i]), np.uint64(rival[i])
        if t == r:
            continue
        if bias != 0.0:
            term = (bias + rounder) - rounder
            out[last, r] += term
            out[last, t] -= term
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            term = ((1.0 if data is None else data[p]) + rounder) - rounder
            out[j, r] += term
            out[j, t] -= term
