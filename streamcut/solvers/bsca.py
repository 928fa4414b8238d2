"""Budgeted stochastic coordinate ascent: dual SVM training on a budget (Qaadan, Schüler & Glasmachers 2019, Algorithm 2).

Problem   max Σ y_i α_i − ε|α_i| − ½ ‖w‖² over a_i ≤ α_i ≤ b_i with w = Σ α_i φ(x_i): the dual of the SVM without bias, with
          y_i = ±1, ε = 0 and α_i between 0 and C u_i y_i (the paper writes α_i y_i for it); of support vector regression with
          |α_i| ≤ C u_i; of quantile regression with ε = 0 and (τ − 1) C u_i ≤ α_i ≤ τ C u_i.
Given     rows in random order, a kernel, a budget B of vectors for the model w̃ = Σ β_j φ(x̃_j) ≈ w.
Returns   the model.
Stops     after a given number of epochs.

    α = 0, M = ∅
    for every row i, in random order
        α_i moves by δ = clip(S(α_i + (y_i − f̃(x_i)) / k(x_i, x_i)), a_i, b_i) − α_i, S shrinking its size by ε / k(x_i, x_i)
        if δ ≠ 0
            add (δ, x_i) to M, or δ to the coefficient of x_i if it is in M
            if |M| > B: maintain the budget, by merging (Algorithm 1), removal or projection

Regression is not in the paper, which names it as one of the possible extensions.

In the last half of the last epoch (the paper has no such damping) α_i moves by a decreasing part
of δ only, which is not in the paper: a full step fits one row regardless of the others, and without a bias all scores move with
it, so the model after a single step is a matter of luck (one epoch of a9a, 10 seeds: 77.3 ± 8.0 % without damping, 84.6 ± 0.1 %
with it). α stays feasible, every step an ascent. Undamped epochs settle when dual variables have come to C, in steps of about 1:
with C = 32 after some 45 (a9a, 100 epochs: 84.9 ± 0.1 %), and only then are there fewer mergings than BSGD's (Figure 8).

Other differences: the paper draws rows uniformly, here they come in shuffled epochs (streamcut.execution.epochs). A vector
without a partner of its sign is removed. Without a budget this is plain stochastic coordinate ascent (SCA).
"""

from __future__ import annotations

from streamcut.compiled import budget as passes
from streamcut.solvers.budget import Method

BSCA = Method(
    True,
    lambda order, rows, alpha, damping, problem, mode, model: passes.ascend(
        order, rows, alpha, damping, problem.kernel.compiled, mode, model
    ),
    lambda model: 1.0,
)
