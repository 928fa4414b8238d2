"""The fraction of a BSCA step's progress that the budget loses (Qaadan et al. 2019, Lemma 1 and equation 5).

A step on row i moves α_i, by the scores f̃ of the budgeted model, to the maximum of the dual if these were the scores f of
w = Σ α_j φ(x_j) itself. A step gains

    J(α_i → a) = (a − α_i)(y_i − f(x_i)) − ε(|a| − |α_i|) − ½ k(x_i, x_i)(a − α_i)²

and E = 1 − J(with f̃) / J(with f) is 0 without a budget, 1 where steps gain nothing, above 1 where they lose. Theorem 1 takes the
worst row. f takes a kernel value of every row with every row, so a sample of rows is used: their mean is an estimate, their worst
one a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from streamcut.compiled.budget import SparseRows
from streamcut.compiled.kernel_rows import kernel_rows
from streamcut.execution.feed import Feed, Traffic
from streamcut.foundation.chunk import concatenate
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.kernel_columns import fetch

_AT_ONCE = 2048  # rows whose kernel values are held at a time


class Lost(NamedTuple):
    """1 − Σ J(with f̃) / Σ J(with f) over the rows, and the largest E of one; 0 where no row has anything to gain."""

    mean: float
    most: float


class SampledRows:
    """`count` rows of the data, drawn by `seed`, and their scores for any coefficients of all rows."""

    def __init__(self, feed: Feed, kernel: Kernel, count: int, seed: int) -> None:
        n, self._kernel, self._feed = feed.data.manifest.statistics.n_rows, kernel, feed
        random = np.random.default_rng(seed)
        self.numbers = np.sort(random.choice(n, min(count, n), replace=False, shuffle=False))
        self.rows = concatenate(fetch(feed, self.numbers, feed.buffers(), Traffic()))
        data = np.ones(self.rows.nnz) if self.rows.data is None else self.rows.data.astype(np.float64)
        shape = len(self.numbers), feed.data.manifest.statistics.n_features
        self.X = sp.csr_array((data, self.rows.indices, self.rows.indptr), shape=shape)
        dense = self.X.toarray()
        self._V = np.ascontiguousarray((dense if kernel.centre is None else kernel.centre.moved_there(dense)).T)
        self._squares = np.einsum("ij,ij->j", self._V, self._V)
        self.diagonal = kernel.diagonal(self._squares)

    @staticmethod
    def memory(count: int, n_features: int) -> int:
        """Bytes of `count` rows, and of a pass with them."""
        return 8 * count * (3 * n_features + _AT_ONCE + 64)

    def scores(self, coefficients: np.ndarray) -> np.ndarray:
        """Σ_j coefficients[j] k(x_j, x) of each row x, float64 (count, K), for coefficients (rows of the data, K). One pass."""
        found, scratch = np.zeros((len(self.numbers), coefficients.shape[1])), np.empty(len(self.numbers))
        for block in self._feed.blocks(0, len(coefficients), self._feed.buffers(), Traffic()):
            for start in range(0, block.n_rows, _AT_ONCE):
                some = self._kernel.moved(block.rows(start, min(start + _AT_ONCE, block.n_rows)))
                own = coefficients[some.first_row : some.first_row + some.n_rows]
                if own.any():
                    values = np.empty((some.n_rows, len(self.numbers)))
                    kernel_rows(
                        some.indptr, some.indices, some.data, self._V, self._squares, self._kernel.compiled, scratch, values
                    )
                    found += values.T @ own
        return found

    def scores_by(self, coefficients: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Σ_j coefficients[j] k(vectors[j], x) of each row x, float64 (count,), for vectors (n, d)."""
        return self._kernel.matrix(self.X, vectors) @ coefficients


def gains(rows: SparseRows, alpha: np.ndarray, f: np.ndarray, believed: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """J of each row (n,) for the step from `alpha` that would be optimal for the scores `believed`; the true ones are `f`."""
    some = np.maximum(diagonal, np.finfo(np.float64).tiny)
    free = alpha + (rows.y - believed) / some
    target = np.clip(np.sign(free) * np.maximum(np.abs(free) - rows.epsilon / some, 0.0), rows.low, rows.high)
    step = np.where(diagonal > 0.0, target - alpha, 0.0)
    return step * (rows.y - f) - rows.epsilon * (np.abs(alpha + step) - np.abs(alpha)) - 0.5 * diagonal * step**2


def lost(reached: Sequence[np.ndarray], possible: Sequence[np.ndarray]) -> Lost:
    """The lost progress, from J with f̃ and with f, for each model (n,)."""
    with_budget, without = np.concatenate(reached), np.concatenate(possible)
    some = without > 1e-12 * np.abs(without).max(initial=0.0)
    if not some.any():
        return Lost(0.0, 0.0)
    mean = 1.0 - with_budget[some].sum() / without[some].sum()
    return Lost(float(mean), float((1.0 - with_budget[some] / without[some]).max()))
