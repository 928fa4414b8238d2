"""Rivals of the stochastic batch perceptron (Cotter et al. 2012, section 4): kernel Pegasos, SDCA and the Perceptron. No bias.

Given     responses of all rows, a random generator; Pegasos and SDCA also C.
Returns   the last iterate.
Stops     with streamcut.papers.rounds.
"""

from __future__ import annotations

import numpy as np

from streamcut.papers.rounds import KernelMethod, Responses


class KernelPegasos(KernelMethod):
    """Stochastic subgradients of the regularised SVM (Shalev-Shwartz, Singer, Srebro & Cotter 2011, Figure 3).

    Problem   min ½‖w‖² + C Σ_i max(0, 1 − y_i ⟨w, φ(x_i)⟩); with λ = 1/(C m) that is λ/2 ‖w‖² + the mean hinge loss.

        for t = 1, 2, …
            i = a row, uniformly
            w ← (1 − 1/t) w, and + 1/(λt) y_i φ(x_i) if y_i ⟨w, φ(x_i)⟩ < 1

    So λ t w is a plain sum of rows, and the responses are kept for it: rows without loss cost no kernel evaluation. α counts how
    often a row was added: λ t w = Σ α_i y_i φ(x_i).
    The paper's projection onto ‖w‖ ≤ 1/√λ is optional there and left out, as in its experiments with kernels.
    """

    kept = (*KernelMethod.kept, "steps")

    def __init__(self, responses: Responses, *, C: float, random: np.random.Generator) -> None:
        super().__init__(responses, random=random)
        self._lambda = 1.0 / (C * responses.n_rows)
        self.steps = 0

    def iterate(self) -> None:
        """One step."""
        row = self.random.integers(self.responses.n_rows, size=1)[0]
        self.rows_seen += 1
        losing = self.steps == 0 or self.responses.c[row] < self._lambda * self.steps
        self.steps += 1
        if losing:
            self.responses.step(row, 1.0)

    def predictor(self) -> tuple[np.ndarray, float]:
        return self.responses.alpha / (self._lambda * self.steps), 0.0


class Shuffled(KernelMethod):
    """A solver that takes the rows of every epoch in a random order, `order` being the rest of it."""

    kept: tuple[str, ...] = (*KernelMethod.kept, "order")
    resized = ("order",)

    def __init__(self, responses: Responses, *, random: np.random.Generator) -> None:
        super().__init__(responses, random=random)
        self.order = np.empty(0, np.int64)

    def next_row(self) -> int:
        """The next row."""
        if len(self.order) == 0:
            self.order = self.random.permutation(self.responses.n_rows)
        row, self.order = int(self.order[0]), self.order[1:]
        self.rows_seen += 1
        return row


class KernelPerceptron(Shuffled):
    """Misclassified rows are added until there are none (Rosenblatt 1958; Freund & Schapire 1999): w ← w + y_i φ(x_i).

    One epoch has a guarantee on the error; more overfit. α counts how often a row was added.
    """

    def iterate(self) -> None:
        """A step on a row."""
        row = self.next_row()
        if self.responses.c[row] <= 0.0:
            self.responses.step(row, 1.0)


class KernelSDCA(Shuffled):
    """Stochastic dual coordinate ascent (Hsieh et al. 2008, Algorithm 1); α is the dual iterate.

    Problem   the dual of the SVM: max Σ α_i − ½ Σ α_i α_j y_i y_j k(x_i, x_j) over 0 ≤ α_i ≤ C.

        α_i ← the best value in [0, C] while the others stay:  α_i + (1 − c_i) / k(x_i, x_i), clipped

    Rows with unchanged α_i cost no kernel evaluation.
    """

    def __init__(self, responses: Responses, *, C: float, random: np.random.Generator) -> None:
        super().__init__(responses, random=random)
        self._C = C

    def iterate(self) -> None:
        """One step."""
        row, responses = self.next_row(), self.responses
        alpha, diagonal = responses.alpha[row], responses.diagonal[row]
        # A row that is 0 in the kernel's space has c = 0 for any α, and takes all of C.
        best = min(max(alpha + (1.0 - responses.c[row]) / diagonal, 0.0), self._C) if diagonal > 0.0 else self._C
        if best != alpha:
            responses.step(row, best - alpha)

    def figures(self) -> dict[str, float]:
        """The value of the dual."""
        alpha = self.responses.alpha
        return {"dual": float(alpha.sum() - 0.5 * (alpha @ self.responses.c))}
