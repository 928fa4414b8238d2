"""The problem of training on a budget: the objective, and rows in the form its steps need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.compiled.budget import SparseRows
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel
from streamcut.losses.hinge import Hinge
from streamcut.losses.loss import Loss

HINGE = Hinge()


@dataclass(frozen=True, slots=True)
class BudgetProblem:
    """min ½‖w‖² + C Σ u_i ℓ(⟨w, φ(x_i)⟩; y_i), once for each of `targets`: rows with that label against all others.

    loss                 one with the dual min ½‖w‖² − Σ y_i α_i + ε|α_i| over a box: the hinge, the ε-insensitive or the
                         quantile loss
    targets              a single unused one for regression
    offset               subtracted from numeric targets: the intercept of the model
    n_rows, n_features   of the data: m, d
    positive_weight      factor on u_i of the rows with the target label
    rows_before          rows of other data on which the initial model was trained
    vectors_before       the most vectors that it has for a target
    """

    kernel: Kernel
    C: float
    targets: tuple[float, ...]
    n_rows: int
    n_features: int
    positive_weight: float = 1.0
    rows_before: int = 0
    vectors_before: int = 0
    loss: Loss = HINGE
    offset: float = 0.0

    @property
    def of_numbers(self) -> bool:
        """Whether this is a regression problem."""
        return self.loss.targets == "numbers"

    @property
    def rows_seen(self) -> int:
        """Rows of this data and of the earlier data."""
        return self.rows_before + self.n_rows

    def slots(self, budget: int | None) -> int:
        """Capacity of a model in vectors: budget + 1, or without a budget all that may come."""
        return self.vectors_before + self.n_rows if budget is None else budget + 1

    def rows(self, chunk: Chunk, target: float) -> SparseRows:
        """`chunk` in the form of compiled code, shifted by the kernel like all vectors in training."""
        chunk = self.kernel.moved(chunk)
        costs = np.full(chunk.n_rows, self.C)
        if self.of_numbers:
            epsilon = float(self.loss.conjugate(1.0, 0.0))  # ℓ*(−f) = ε|f|
            if chunk.weight is not None:
                costs *= chunk.weight
            low, high = costs * self.loss.lowest(0.0), costs * self.loss.highest(0.0)
            return SparseRows(chunk.indptr, chunk.indices, chunk.data, chunk.y - self.offset, low, high, epsilon, chunk.first_row)
        positive = chunk.y == target
        costs[positive] = self.C * self.positive_weight
        if chunk.weight is not None:
            costs *= chunk.weight
        signs, zero = np.where(positive, 1.0, -1.0), np.zeros(chunk.n_rows)
        low, high = np.where(positive, zero, -costs), np.where(positive, costs, zero)
        return SparseRows(chunk.indptr, chunk.indices, chunk.data, signs, low, high, 0.0, chunk.first_row)
