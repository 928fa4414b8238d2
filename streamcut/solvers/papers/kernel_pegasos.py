"""Kernel Pegasos: stochastic subgradients of the regularised SVM (Shalev-Shwartz, Singer, Srebro & Cotter 2011, Figure 3).

Problem   min ½‖w‖² + C Σ_i max(0, 1 − y_i ⟨w, φ(x_i)⟩); with λ = 1/(C m) that is λ/2 ‖w‖² + the mean hinge loss. No bias.
Given     responses of a runner, C, rows of a batch, a random generator.
Returns   the last iterate.
Stops     with streamcut.solvers.papers.kernel_iterations.

    for t = 1, 2, …
        S = `batch` rows, uniformly;  S⁺ = those of them with y_i ⟨w, φ(x_i)⟩ < 1
        w ← (1 − 1/t) w + 1/(λt) Σ_{i in S⁺} y_i φ(x_i) / batch

So λ t w is a plain sum of rows, and the responses are kept for it: rows without loss cost no kernel evaluation.
The paper's projection onto ‖w‖ ≤ 1/√λ is optional there and left out, as in its experiments with kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.oracles.kernel_columns import Responses
from streamcut.solvers.papers.kernel_iterations import Reads


class KernelPegasos:
    """α of the responses counts how often a row was added, divided by the batch: λ t w = Σ α_i y_i φ(x_i)."""

    def __init__(self, responses: Responses, *, C: float, batch: int = 1, random: np.random.Generator) -> None:
        self.responses = responses
        self.rows_seen = 0
        self._lambda = 1.0 / (C * responses.n_rows)
        self._batch = min(batch, responses.n_rows)
        self.random = random
        self._steps = 0

    def iterate(self) -> None:
        """One step."""
        m = self.responses.n_rows
        rows = self.random.integers(m, size=1) if self._batch == 1 else self.random.choice(m, self._batch, replace=False)
        self.rows_seen += self._batch
        losing = rows if self._steps == 0 else rows[self.responses.c[rows] < self._lambda * self._steps]
        self._steps += 1
        if len(losing):
            self.responses.step(np.sort(losing), np.full(len(losing), 1.0 / self._batch))

    def predictor(self) -> tuple[np.ndarray, float]:
        """(α in the order of responses.numbers, 0)."""
        return self.responses.alpha / (self._lambda * self._steps), 0.0

    def figures(self) -> dict[str, float]:
        """No figures beyond those of all solvers."""
        return {}

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The number of steps."""
        return {"steps": self._steps}, {}

    def restore(self, numbers: dict[str, Any], read: Reads) -> None:
        """Resume from what `saved` returned."""
        self._steps = numbers["steps"]
