"""Budgeted stochastic coordinate ascent: dual SVM training on a budget (Qaadan, Schüler & Glasmachers 2019, Algorithm 2).

Problem   max Σ α_i − ½ ‖w‖² over 0 ≤ α_i ≤ C u_i with w = Σ α_i y_i φ(x_i): the dual of the SVM without bias.
Given     rows in random order, a kernel, a budget B of vectors for the model w̃ = Σ β_j φ(x̃_j) ≈ w.
Returns   the model.
Stops     after a given number of epochs.

    α = 0, M = ∅
    for every row i, in random order
        α_i moves by δ = clip(α_i + (1 − y_i f̃(x_i)) / k(x_i, x_i), 0, C u_i) − α_i
        if δ ≠ 0
            add (δ y_i, x_i) to M, or δ y_i to the coefficient of x_i if it is in M
            if |M| > B: maintain the budget, by merging (Algorithm 1), removal or projection

In the last part of the last epoch (`damping`, half of it unless given; 0: the paper's algorithm) α_i moves by a falling part of δ
only, which the paper doesn't have: a whole step puts one row right whatever that does to others, and without a bias all scores go
with it, so the model of a single step is a matter of luck (one epoch of a9a, 10 seeds: 81.4 ± 3.4 % without damping, 84.8 ± 0.1 %
with it). α stays feasible, every step an ascent.

Other differences: the paper draws rows uniformly, here they come in shuffled epochs (streamcut.execution.epochs). A vector
without another of its sign to merge with is removed. Without a budget this is plain stochastic coordinate ascent (SCA).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamcut.compiled import budget as passes
from streamcut.compiled.budget import Slots, SparseRows
from streamcut.solvers.budget import Damping, Problem


class Bsca:
    """A streamcut.solvers.budget.Method."""

    has_alpha: ClassVar[bool] = True

    def steps(
        self,
        order: np.ndarray,
        rows: SparseRows,
        alpha: np.ndarray | None,
        damping: Damping,
        problem: Problem,
        mode: int,
        model: Slots,
    ) -> None:
        passes.ascend(order, rows, alpha, damping, problem.kernel.compiled, mode, model)

    def scale(self, model: Slots) -> float:
        return 1.0
