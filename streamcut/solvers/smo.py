"""SMO: sequential minimal optimisation for data in memory (Platt 1998; Fan, Chen & Lin 2005; Chang & Lin 2011, sections 4 and 5).

Problem   min ½ Σ α_i α_j y_i y_j k(x_i, x_j) − Σ α_i over 0 ≤ α_i ≤ C_i, with a bias also Σ y_i α_i = 0: the dual of the SVM with
          hinge loss and, with a bias, an intercept that is not regularised.
Given     all rows, their C_i, a kernel, memory for kernel columns, a tolerance.
Returns   α.
Stops     when no pair of rows (without bias: no row) violates optimality by the tolerance.

    α = 0
    repeat
        the pair that violates optimality (the first row most, the second by the decrease that it promises) goes to its optimum
        every now and then rows that will stay at their bound are left out (shrinking)
        near the optimum, and at the end, all rows are looked at again

As LIBSVM does it, but for the kernel columns: they are computed by scattering a row, not by merging two, and there is no second
gradient of the rows at C; what was left out is computed anew from all support rows, in blocks, with exact kernel values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamcut.chunk import Chunk, concatenate
from streamcut.execution.kernel_columns import KernelColumn, add_scores, squared_norms
from streamcut.kernels.kernel import Kernel
from streamcut.passes import smo
from streamcut.passes.smo import DONE, MISSING

_SHRINK_EVERY = 1000  # steps, or as many as there are rows
_NEAR = 10.0  # times the tolerance: where all rows are looked at once more, and shrinking starts from what is then known
_MISSES = 256  # missing columns after which `stop` is asked


class KernelCache:
    """Columns of the kernel over the active rows, float32; the one that was used longest ago makes room."""

    def __init__(self, n_rows: int, size: int) -> None:
        self.slot_of = np.full(n_rows, -1, np.int32)
        self.stamps = np.zeros(n_rows, np.int64)
        self._size = max(size // 4, 2 * n_rows)
        self.numbers = np.empty(min(self._size, n_rows * n_rows), np.float32)
        self._owner = np.full(n_rows, -1, np.int64)
        self.resize(n_rows)

    def resize(self, width: int) -> None:
        """Columns are `width` numbers long from now on; those that are there already stay only if it is what they have."""
        self.width = width
        self._slots = min(len(self.numbers) // max(width, 1), len(self._owner))

    def clear(self, width: int) -> None:
        """Forget all."""
        self.slot_of[:], self.stamps[:], self._owner[:] = -1, 0, -1
        self.resize(width)

    def put(self, row: int, column: np.ndarray, now: int) -> None:
        """Keep the column of `row`."""
        slot = int(np.argmin(self.stamps[: self._slots]))
        if self._owner[slot] >= 0:
            self.slot_of[self._owner[slot]] = -1
        self._owner[slot], self.slot_of[row], self.stamps[slot] = row, slot, now
        self.numbers[slot * self.width : (slot + 1) * self.width] = column

    def narrow(self, kept: np.ndarray) -> None:
        """Keep of all columns the positions `kept`."""
        smo.compact(self.numbers, self._slots, self.width, kept)
        self.resize(len(kept))


class SMO:
    """`chunk` holds all rows, `signs` (m) their classes ±1, `upper` (m) their C_i; `cache_bytes` for kernel columns.

    evaluations  kernel values computed so far
    gradient     y_i f(x_i) − 1 without the intercept; exact to the precision of float32 kernel values
    """

    def __init__(
        self, chunk: Chunk, kernel: Kernel, signs: np.ndarray, upper: np.ndarray, *, dimension: int, bias: bool, cache_bytes: int
    ) -> None:
        self.evaluations = 0
        self.steps = 0
        self._chunk, self._kernel, self._dimension, self._bias = chunk, kernel, dimension, bias
        self._squares = squared_norms(chunk)
        self._diagonal = kernel.diagonal(self._squares)
        self._sign, self._upper = signs, upper
        self.alpha = np.zeros(chunk.n_rows)
        self.gradient = np.full(chunk.n_rows, -1.0)
        self._cache = KernelCache(chunk.n_rows, cache_bytes)
        self._active = np.arange(chunk.n_rows)
        self._counted = 0  # steps since rows were last left out
        self._looked_again = False

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Steps until no violation is as large as `tolerance`, over all rows. False: `stop` said so before."""
        advance, every = smo.pairs if self._bias else smo.singles, min(_SHRINK_EVERY, self._chunk.n_rows)
        misses = 0
        self._looked_again = False
        while True:
            cache = self._cache
            ended, row, steps = advance(
                self._active, self._sign, self._upper, self._diagonal, cache.numbers, cache.slot_of, cache.stamps, self._now,
                self.alpha, self.gradient, tolerance, every - self._counted,
            )  # fmt: skip
            self.steps += steps
            self._counted += steps
            if ended == MISSING:
                self._fill(row)
                misses += 1
                if misses % _MISSES == 0 and stop():
                    break
            elif ended == DONE and len(self._active) == self._chunk.n_rows:
                return True
            elif ended == DONE:
                self._look_at_all()
            else:
                self._counted = 0
                if stop():
                    break
                self._shrink(tolerance)
        self._look_at_all()
        return False

    @property
    def _now(self) -> int:
        return self.steps + 1

    def _fill(self, row: int) -> None:
        """Compute the column of `row`."""
        at = KernelColumn(self._kernel, self._chunk.rows(row, row + 1), self._squares[row], self._dimension)
        everything = len(self._active) == self._chunk.n_rows
        self._cache.put(row, at.over(self._chunk, self._squares, None if everything else self._active), self._now)
        self.evaluations += len(self._active)

    def _shrink(self, tolerance: float) -> None:
        """Leave out rows that will hardly move."""
        if self._bias:
            highest, lowest = smo.extremes(self._active, self._sign, self._upper, self.alpha, self.gradient)
            largest = highest - lowest
        else:
            highest = largest = smo.violation(self._active, self._upper, self.alpha, self.gradient)
            lowest = -highest
        if not self._looked_again and largest <= _NEAR * tolerance:
            self._looked_again = True
            self._look_at_all()
        kept = np.empty(len(self._active), np.int64)
        n = smo.still_needed(
            self._active, self._sign, self._upper, self.alpha, self.gradient, highest, lowest, self._bias, kept
        )  # fmt: skip
        if n < len(self._active):
            self._cache.narrow(kept[:n])
            self._active = self._active[kept[:n]]

    def _look_at_all(self) -> None:
        """All rows are active again; the gradients of those that were not come from all support rows."""
        m = self._chunk.n_rows
        if len(self._active) == m:
            return
        left_out = np.setdiff1d(np.arange(m), self._active, assume_unique=True)
        (support,) = np.nonzero(self.alpha)
        scores = np.zeros(len(left_out))
        if len(support):
            rows = concatenate([self._chunk.rows(i, i + 1) for i in support.tolist()])
            coefficients = self.alpha[support] * self._sign[support]
            add_scores(
                self._kernel, left_out, self._chunk, self._squares, rows, self._squares[support], coefficients,
                self._dimension, scores,
            )  # fmt: skip
        self.evaluations += len(support) * len(left_out)
        self.gradient[left_out] = self._sign[left_out] * scores - 1.0
        self._active = np.arange(m)
        self._cache.clear(m)
