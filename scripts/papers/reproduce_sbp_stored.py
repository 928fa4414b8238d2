"""Kernel values of all pairs of rows, stored: what ten epochs at the full size of a set take from hours to minutes.

A value of a Gaussian kernel is kept as one of 65,536 steps from 0 to 1, so it is off by 8e-6 at most: a file of n² · 2 bytes,
mapped into memory (7.2 GB for the 60,000 rows of MNIST). It is made by matrix products in float32, a block of rows at a time.
Solvers count kernel evaluations as they do on rows that are read.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numba import njit

from streamcut.execution.feed import Traffic

STEPS = 65_535
_BLOCK = 1_000  # rows


def stored_values(X: sp.csr_array, Y: sp.csr_array, gamma: float, path: Path) -> np.ndarray:
    """exp(−γ‖x − y‖²) of all rows of X (n, d) and Y (m, d): (n, m) uint16 in units of 1/STEPS, kept at `path`."""
    shape = X.shape[0], Y.shape[0]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        out = np.memmap(unfinished, np.uint16, "w+", shape=shape)
        dense = np.ascontiguousarray(Y.astype(np.float32).toarray().T)
        squares = np.square(dense).sum(axis=0)
        for first in range(0, shape[0], _BLOCK):
            part = X[first : first + _BLOCK].astype(np.float32).toarray()
            away = part @ dense
            away *= np.float32(-2.0)
            away += np.square(part).sum(axis=1)[:, None]
            away += squares
            np.maximum(away, 0.0, out=away)
            away *= np.float32(-gamma)
            np.exp(away, out=away)
            out[first : first + _BLOCK] = np.rint(away * STEPS)
        out.flush()
        del out
        os.replace(unfinished, path)
    return np.memmap(path, np.uint16, "r", shape=shape)


@njit(cache=True)
def _follow(values, sign, coefficient, scale, c, c_sum):
    for j in range(len(c)):
        c[j] = scale * (c[j] + sign[j] * (coefficient * values[j]))
    if c_sum is not None:
        for j in range(len(c)):
            c_sum[j] += c[j]


@njit(cache=True)
def _scores(values, kept, coefficients, out):
    for i in range(len(out)):
        total = 0.0
        for k in range(len(kept)):
            total += coefficients[k] * values[i, kept[k]]
        out[i] = total / STEPS


def scores(values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Σ_j coefficients_j k(x_i, x_j) for the rows i of stored `values` (n, m), float64."""
    (kept,) = np.nonzero(coefficients)
    out = np.empty(values.shape[0])
    _scores(values, kept, coefficients[kept], out)
    return out


class StoredResponses:
    """streamcut.oracles.kernel_columns.Responses of rows whose kernel values are stored; one row a step, α of all rows."""

    passes = 0
    traffic = Traffic()

    def __init__(self, values: np.ndarray, signs: np.ndarray, *, averaged: bool = False) -> None:
        self.n_rows = len(signs)
        self.signs = signs.astype(np.int8)
        self.evaluations = 0
        self.c, self.alpha, self.alpha_sum = (np.zeros(self.n_rows) for _ in range(3))
        self.c_sum = np.zeros(self.n_rows) if averaged else None
        self.diagonal, self.numbers = np.ones(self.n_rows), np.arange(self.n_rows)
        self._values = values

    def alpha_of(self, row: int) -> float:
        """α of one row."""
        return float(self.alpha[row])

    def square_of(self, rows: np.ndarray, steps: np.ndarray) -> float:
        """‖step y φ(x)‖² of the one row."""
        return float(steps[0] ** 2)

    def step(self, rows: np.ndarray, steps: np.ndarray, scale: float = 1.0) -> None:
        """α_i += step for the one row, then α and c times `scale`, then both to their sums."""
        row = int(rows[0])
        self.alpha[row] += steps[0]
        if scale != 1.0:
            self.alpha *= scale
        if self.c_sum is not None:
            self.alpha_sum += self.alpha
        coefficient = float(steps[0]) * float(self.signs[row]) / STEPS
        _follow(self._values[row], self.signs, coefficient, scale, self.c, self.c_sum)
        self.evaluations += self.n_rows
