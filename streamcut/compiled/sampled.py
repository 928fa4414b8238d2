"""Scores of rows as mixtures of cuts cached for each row.

`slots` are those of the bundle, below the number of cuts that rows can hold; `columns` class numbers, of known labels
(streamcut.oracles.row_passes.targets) and of their rivals.
"""

import numpy as np

from streamcut.compiler.jit import kernel


@kernel
def mix(cached, slots, mixture, out):
    """out[i] = −Σ_t mixture[t] cached[i, slots[t]], t in order; `cached` (n, cuts, columns) float32, `out` (n, columns)."""
    if out.shape[1] == 1:
        for i in range(np.uint64(len(out))):
            total = 0.0
            for t in range(np.uint64(len(slots))):
                total -= mixture[t] * np.float64(cached[i, np.uint64(slots[t]), 0])
            out[i, 0] = total
        return
    for i in range(len(out)):
        for c in range(out.shape[1]):
            out[i, c] = 0.0
        for t in range(len(slots)):
            s = np.uint64(slots[t])
            for c in range(out.shape[1]):
                out[i, c] -= mixture[t] * np.float64(cached[i, s, c])


@kernel
def add_scores(values, columns, factors, out):
    """out[i, columns[k, e]] += factors[k, e] values[i, k] for all k and e, in place."""
    for i in range(len(out)):
        for k in range(values.shape[1]):
            for e in range(columns.shape[1]):
                out[i, np.uint64(columns[k, e])] += factors[k, e] * values[i, k]


@kernel
def add_scores_across(values, columns, factors, out):
    """out[columns[k, e], j] += factors[k, e] values[k, j] for all k and e, in place."""
    for k in range(len(values)):
        for e in range(columns.shape[1]):
            c, factor = columns[k, e], factors[k, e]
            for j in range(values.shape[1]):
                out[c, j] += factor * values[k, j]
