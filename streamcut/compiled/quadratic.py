"""Quadratic forms xᵀQx of rows, with a symmetric Q of which the lower triangle is kept row after row: (0,0), (1,0), (1,1), …"""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.compiler.jit import fused


@fused
def forms(indptr, indices, data, Q, D, bias, out):
    """out[i] = xᵀQx of row i, with the bias feature, of value `bias`, last if `bias` is not 0; features of a row increase.

    Q float64 (D(D + 1)/2,). 2n² roundings of n entries: each is at most a part γ of (Σ |x_j| √Q_jj)².
    """
    last = np.uint64(len(Q) - D)
    for i in range(len(out)):
        total, first = 0.0, np.uint64(indptr[i])
        for s in range(first, np.uint64(indptr[i + 1])):
            j = np.uint64(indices[s])
            row, across = j * (j + np.uint64(1)) // np.uint64(2), 0.0
            for t in range(first, s):
                across += Q[row + np.uint64(indices[t])] * entry(data, t)
            value = entry(data, s)
            total += value * (2.0 * across + Q[row + j] * value)
        if bias != 0.0:
            across = 0.0
            for t in range(first, np.uint64(indptr[i + 1])):
                across += Q[last + np.uint64(indices[t])] * entry(data, t)
            total += bias * (2.0 * across + Q[len(Q) - 1] * bias)
        out[i] = total


@fused
def magnitudes(indptr, indices, data, q, bias, out):
    """out[i] = Σ_j q_j |x_ij| of row i, the bias feature as in `forms`; q float64 (D,)."""
    constant = abs(bias) * q[-1] if bias != 0.0 else 0.0
    for i in range(len(out)):
        total = constant
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += q[np.uint64(indices[t])] * abs(entry(data, t))
        out[i] = total


@fused
def squares(indptr, data, bias, out):
    """out[i] = ‖x‖² of row i, with the bias feature."""
    for i in range(len(out)):
        total = bias * bias
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += entry(data, t) * entry(data, t)
        out[i] = total
