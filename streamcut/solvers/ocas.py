"""OCAS: the optimised cutting plane algorithm (Franc & Sonnenburg 2008, Algorithm 1), in two forms.

Problem   min F(w) = ½‖w‖² + C̄ R(w), R the mean risk of an oracle.
Given     the oracle, a bundle size, a stopping rule, μ (the paper's λ), and where the cut is taken.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    w_b = 0, first cut at 0
    repeat
        solve the master problem: its value is the bound, its solution w
        k = argmin_{k ≥ 0} F(w_b + k(w − w_b));   w_b ← w_b + k(w − w_b)
        add the cut at w_c = w_b + μ(w − w_b)

"exact" is the paper: a pass for the scores of w, the line search, a pass for the cut at w_c.
"predicted" guesses the step before the pass, κ = k_prev + μ(1 − k_prev), and takes scores of w and the cut at
w_b + κ(w − w_b) in one pass: a subgradient at any point is a valid cut, so only its position is a guess.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from streamcut.bundle.bundle import Bundle
from streamcut.bundle.line_search import minimise_along_line
from streamcut.execution.oracle import LinearOracle
from streamcut.models.certificate import StopReason, Witness
from streamcut.passes import vectors
from streamcut.solvers.cpa import qp_tolerance
from streamcut.solvers.progress import Observer, Progress, Solution, StoppingRule

MU = 0.1  # "works consistently well in all experiments" (paper, section 3)


def solve(
    oracle: LinearOracle,
    rule: StoppingRule,
    *,
    max_cuts: int,
    cut: Literal["predicted", "exact"] = "predicted",
    observe: Observer | None = None,
) -> Solution:
    """Run OCAS to the stopping rule: one pass an iteration with predicted cuts, two with exact ones."""
    progress = Progress(rule, observe)
    plane, loss = oracle.start()
    w_b, F_b = np.zeros(oracle.dimension), oracle.C * loss
    bundle = Bundle(oracle.dimension, oracle.c_bar, max_cuts)
    best_bound, witness = 0.0, Witness(np.zeros(oracle.dimension), 0.0)
    k = 1.0
    reason: StopReason | None = None
    while True:
        bundle.add(plane.a, plane.b)
        master = bundle.solve(qp_tolerance(rule, F_b, oracle.c_bar))
        w = master.w
        if master.lower_bound > best_bound:
            best_bound, witness = master.lower_bound, Witness(-w / oracle.c_bar, master.b)
        reason = progress.note(F_b, best_bound, k, len(bundle), oracle)
        if reason is not None:
            break
        mu = 1.0 if progress.still else MU  # the cut at w itself always improves the bundle: a full one may need that
        if cut == "predicted":
            plane = oracle.score_and_cut(w, k + mu * (1.0 - k))
        else:
            oracle.score(w)
        A0, B0 = vectors.line(w_b, w)
        k = minimise_along_line(A0, B0, oracle.C, oracle)
        square = vectors.move(w_b, w, k)
        F_b = 0.5 * square + oracle.C * oracle.step(k)
        if cut == "exact":
            if rule.reason(F_b, best_bound, oracle.c_bar, 0, 0.0) is not None:  # converged: its second pass is not needed
                reason = progress.note(F_b, best_bound, k, len(bundle), oracle)
                assert reason is not None
                break
            plane = oracle.cut_between(mu)
    return Solution(w_b, F_b, best_bound, witness, reason, progress.history)
