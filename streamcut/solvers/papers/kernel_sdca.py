"""Kernel SDCA: stochastic dual coordinate ascent (Hsieh et al. 2008, Algorithm 1; Cotter et al. 2012, section 4.4).

Problem   the dual of the SVM without bias: max Σ α_i − ½ Σ α_i α_j y_i y_j k(x_i, x_j) over 0 ≤ α_i ≤ C.
Given     responses of a runner, C, rows of a batch, a random generator.
Returns   the last iterate.
Stops     with streamcut.solvers.papers.kernel_iterations.

    for every epoch, for i in a random order
        α_i ← the best value in [0, C] while the others stay:  α_i + (1 − c_i) / k(x_i, x_i), clipped

A batch of b rows (ours) takes 1/b of each row's step at once, which never lowers the dual: by concavity its value is at
least the mean of those after the single steps. Rows with unchanged α_i cost no kernel evaluation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.oracles.kernel_columns import Responses
from streamcut.solvers.papers.kernel_iterations import Reads


class KernelSDCA:
    """α of the responses is the dual iterate."""

    def __init__(self, responses: Responses, *, C: float, batch: int = 1, random: np.random.Generator) -> None:
        self.responses = responses
        self.rows_seen = 0
        self._C = C
        self._batch = batch
        self.random = random
        self._diagonal = responses.diagonal
        self._order = np.empty(0, np.int64)

    def iterate(self) -> None:
        """One step."""
        if len(self._order) == 0:
            self._order = self.random.permutation(self.responses.n_rows)
        rows, self._order = self._order[: self._batch], self._order[self._batch :]
        self.rows_seen += len(rows)
        alpha = np.array([self.responses.alpha_of(row) for row in rows.tolist()])
        ahead = 1.0 - self.responses.c[rows]
        diagonal = self._diagonal[rows]
        # A row that is 0 in the kernel's space has c = 0 for any α, and takes all of C.
        room = np.divide(ahead, diagonal, out=np.full(len(rows), np.inf), where=diagonal > 0.0)
        steps = np.clip(alpha + room, 0.0, self._C) - alpha
        moving = steps != 0.0
        if moving.any():
            self.responses.step(rows[moving], steps[moving] / len(rows))

    def predictor(self) -> tuple[np.ndarray, float]:
        """(α in the order of responses.numbers, 0)."""
        return self.responses.alpha.copy(), 0.0

    def figures(self) -> dict[str, float]:
        """The value of the dual."""
        alpha = self.responses.alpha
        c = self.responses.c[self.responses.numbers]
        return {"dual": float(alpha.sum() - 0.5 * (alpha @ c))}

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The rest of this epoch's order."""
        return {}, {"order": self._order}

    def restore(self, numbers: dict[str, Any], read: Reads) -> None:
        """Resume from what `saved` returned."""
        self._order = read("order", np.int64)
