"""Budgeted stochastic gradient descent (Wang, Crammer & Vucetic 2012), the primal twin of BSCA; equation 4 of its paper.

Problem   min ½‖w‖² + C Σ u_i ℓ(⟨w, φ(x_i)⟩; y_i), ℓ the hinge, the ε-insensitive loss or that of a quantile; the paper's λ is
          1 / (C n), with n the rows seen, earlier data included.
Given     rows in random order, a kernel, a budget B of vectors for the model.
Returns   the model of the last step.
Stops     after a given number of epochs.

    M = ∅ (or the vectors of a model, whose step count t continues)
    for every row i, in random order, t = 1, 2, …
        all coefficients shrink by 1 − 1/t
        if g = −ℓ′(f̃(x_i); y_i) ≠ 0, with f̃ from before shrinking (for the hinge: g = y_i where y_i f̃(x_i) < 1)
            add (n C u_i g / t, x_i) to M, or to the coefficient of x_i if it is in M
            if |M| > B: maintain the budget, as in streamcut.solvers.bsca

Without a budget this is kernelised Pegasos without its projection (SGD).
"""

from __future__ import annotations

from streamcut.compiled import budget as passes
from streamcut.solvers.budget import Method

BSGD = Method(
    False,
    lambda order, rows, alpha, damping, problem, mode, model: passes.descend(
        order, rows, problem.rows_seen, problem.kernel.compiled, mode, model
    ),
    lambda model: 1.0 / max(int(model.counts[passes.STEPS]), 1),
)
