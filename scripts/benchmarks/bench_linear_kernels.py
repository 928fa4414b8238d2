"""Kernels of bench_linear_blocks.py: block minimisation of the dual."""

import numpy as np

from streamcut.compiler.jit import kernel


@kernel
def descend(order, indptr, indices, data, y, squares, C, logistic, alpha, w):
    """Dual coordinate descent over the rows in `order`, in place; w (d + 1) is Σ α y x with a bias feature of 1."""
    last = len(w) - 1
    for i in order:
        score = w[last]
        for t in range(indptr[i], indptr[i + 1]):
            score += w[indices[t]] * data[t]
        z, a, q = y[i] * score, alpha[i], squares[i] + 1.0
        if logistic:
            low, high = 1e-12 * C, (1.0 - 1e-12) * C
            new = a
            for _ in range(5):
                slope = np.log(new / (C - new)) + z + q * (new - a)
                step = slope / (q + C / (new * (C - new)))
                new = min(max(new - step, max(low, 0.1 * new)), min(high, C - 0.1 * (C - new)))
        else:
            new = min(max(a - (z - 1.0) / q, 0.0), C)
        if new != a:
            change = (new - a) * y[i]
            alpha[i] = new
            w[last] += change
            for t in range(indptr[i], indptr[i + 1]):
                w[indices[t]] += change * data[t]
