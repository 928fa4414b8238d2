"""Kernel Perceptron (Rosenblatt 1958; Freund & Schapire 1999; Cotter et al. 2012, section 4.5).

Problem   none: misclassified rows are added until there are none. One epoch has a guarantee on the error; more overfit.
Given     responses of a runner, rows of a batch, a random generator.
Returns   the last iterate.
Stops     with streamcut.solvers.papers.kernel_iterations.

    for every epoch, for i in a random order
        if y_i ⟨w, φ(x_i)⟩ ≤ 0:  w ← w + y_i φ(x_i)

In a batch (ours) all rows misclassified before it are added at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.oracles.kernel_columns import Responses
from streamcut.solvers.papers.kernel_iterations import Reads


class KernelPerceptron:
    """α of the responses counts how often a row was added."""

    def __init__(self, responses: Responses, *, batch: int = 1, random: np.random.Generator) -> None:
        self.responses = responses
        self.rows_seen = 0
        self._batch = batch
        self.random = random
        self._order = np.empty(0, np.int64)

    def iterate(self) -> None:
        """A step on a batch of rows."""
        if len(self._order) == 0:
            self._order = self.random.permutation(self.responses.n_rows)
        rows, self._order = self._order[: self._batch], self._order[self._batch :]
        self.rows_seen += len(rows)
        wrong = rows[self.responses.c[rows] <= 0.0]
        if len(wrong):
            self.responses.step(np.sort(wrong), np.ones(len(wrong)))

    def predictor(self) -> tuple[np.ndarray, float]:
        """(α in the order of responses.numbers, 0)."""
        return self.responses.alpha.copy(), 0.0

    def figures(self) -> dict[str, float]:
        """No figures beyond those of all solvers."""
        return {}

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The rest of this epoch's order."""
        return {}, {"order": self._order}

    def restore(self, numbers: dict[str, Any], read: Reads) -> None:
        """Resume from what `saved` returned."""
        self._order = read("order", np.int64)
