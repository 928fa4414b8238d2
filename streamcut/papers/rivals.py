"""Rivals of the stochastic batch perceptron (Cotter et al. 2012, section 4): kernel Pegasos, SDCA and the Perceptron. No bias.

Given     responses of a runner, rows of a batch, a random generator; Pegasos and SDCA also C.
Returns   the last iterate.
Stops     with streamcut.papers.rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.papers.responses import Responses
from streamcut.papers.rounds import KernelMethod


class KernelPegasos(KernelMethod):
    """Stochastic subgradients of the regularised SVM (Shalev-Shwartz, Singer, Srebro & Cotter 2011, Figure 3).

    Problem   min ½‖w‖² + C Σ_i max(0, 1 − y_i ⟨w, φ(x_i)⟩); with λ = 1/(C m) that is λ/2 ‖w‖² + the mean hinge loss.

        for t = 1, 2, …
            S = `batch` rows, uniformly;  S⁺ = those of them with y_i ⟨w, φ(x_i)⟩ < 1
            w ← (1 − 1/t) w + 1/(λt) Σ_{i in S⁺} y_i φ(x_i) / batch

    So λ t w is a plain sum of rows, and the responses are kept for it: rows without loss cost no kernel evaluation. α counts how
    often a row was added, divided by the batch: λ t w = Σ α_i y_i φ(x_i).
    The paper's projection onto ‖w‖ ≤ 1/√λ is optional there and left out, as in its experiments with kernels.
    """

    kept = (*KernelMethod.kept, "steps")

    def __init__(self, responses: Responses, *, C: float, batch: int = 1, **given: Any) -> None:
        super().__init__(responses, batch=min(batch, responses.n_rows), **given)
        self._lambda = 1.0 / (C * responses.n_rows)
        self.steps = 0

    def iterate(self) -> None:
        """One step."""
        m = self.responses.n_rows
        rows = self.random.integers(m, size=1) if self._batch == 1 else self.random.choice(m, self._batch, replace=False)
        self.rows_seen += self._batch
        losing = rows if self.steps == 0 else rows[self.responses.c[rows] < self._lambda * self.steps]
        self.steps += 1
        if len(losing):
            self.responses.step(np.sort(losing), np.full(len(losing), 1.0 / self._batch))

    def predictor(self) -> tuple[np.ndarray, float]:
        return self.responses.alpha / (self._lambda * self.steps), 0.0


class Shuffled(KernelMethod):
    """A solver that takes the rows of every epoch in a random order, `order` being the rest of it."""

    kept: tuple[str, ...] = (*KernelMethod.kept, "order")
    resized = ("order",)

    def __init__(self, responses: Responses, **given: Any) -> None:
        super().__init__(responses, **given)
        self.order = np.empty(0, np.int64)

    def next_rows(self) -> np.ndarray:
        """The rows of the next batch."""
        if len(self.order) == 0:
            self.order = self.random.permutation(self.responses.n_rows)
        rows, self.order = self.order[: self._batch], self.order[self._batch :]
        self.rows_seen += len(rows)
        return rows


class KernelPerceptron(Shuffled):
    """Misclassified rows are added until there are none (Rosenblatt 1958; Freund & Schapire 1999): w ← w + y_i φ(x_i).

    One epoch has a guarantee on the error; more overfit. In a batch (ours) all rows misclassified before it are added at once. α
    counts how often a row was added.
    """

    def iterate(self) -> None:
        """A step on a batch of rows."""
        rows = self.next_rows()
        wrong = rows[self.responses.c[rows] <= 0.0]
        if len(wrong):
            self.responses.step(np.sort(wrong), np.ones(len(wrong)))


class KernelSDCA(Shuffled):
    """Stochastic dual coordinate ascent (Hsieh et al. 2008, Algorithm 1); α is the dual iterate.

    Problem   the dual of the SVM: max Σ α_i − ½ Σ α_i α_j y_i y_j k(x_i, x_j) over 0 ≤ α_i ≤ C.

        α_i ← the best value in [0, C] while the others stay:  α_i + (1 − c_i) / k(x_i, x_i), clipped

    A batch of b rows (ours) takes 1/b of each row's step at once, which never lowers the dual: by concavity its value is at
    least the mean of those after the single steps. Rows with unchanged α_i cost no kernel evaluation.
    """

    def __init__(self, responses: Responses, *, C: float, **given: Any) -> None:
        super().__init__(responses, **given)
        self._C, self._diagonal = C, responses.diagonal

    def iterate(self) -> None:
        """One step."""
        rows = self.next_rows()
        alpha = np.array([self.responses.alpha_of(row) for row in rows.tolist()])
        ahead = 1.0 - self.responses.c[rows]
        diagonal = self._diagonal[rows]
        # A row that is 0 in the kernel's space has c = 0 for any α, and takes all of C.
        room = np.divide(ahead, diagonal, out=np.full(len(rows), np.inf), where=diagonal > 0.0)
        steps = np.clip(alpha + room, 0.0, self._C) - alpha
        moving = steps != 0.0
        if moving.any():
            self.responses.step(rows[moving], steps[moving] / len(rows))

    def figures(self) -> dict[str, float]:
        """The value of the dual."""
        alpha = self.responses.alpha
        c = self.responses.c[self.responses.numbers]
        return {"dual": float(alpha.sum() - 0.5 * (alpha @ c))}
