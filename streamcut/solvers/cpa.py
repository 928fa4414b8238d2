"""CPA: the cutting plane algorithm (Joachims 2006, Algorithm 1; Teo et al. 2007 in the notation used here).

Problem   min F(w) = ½‖w‖² + C̄ R(w), R the mean risk of an oracle.
Given     the oracle, a bundle size, a stopping rule.
Returns   the best iterate, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough. The paper stops on R(w) ≤ ξ + ε at the present w; with C̄ε = gap that is the
          same rule at the last iterate instead of the best one.

    w = 0
    repeat
        one pass: F(w) and the cut (a, b) at w          w_b = w if F(w) is the best so far
        add the cut to the bundle
        solve the master problem: its value is the bound, its solution the next w
"""

from __future__ import annotations

import numpy as np

from streamcut.bundle.bundle import Bundle
from streamcut.execution.oracle import LinearOracle
from streamcut.models.certificate import StopReason, Witness
from streamcut.passes import vectors
from streamcut.solvers.progress import Observer, Progress, Solution, StoppingRule

QP_SHARE = 1e-3  # the master problem is solved to this part of the gap that is asked for


def qp_tolerance(rule: StoppingRule, primal: float, c_bar: float) -> float:
    """Gap to which the master problem is solved, never below what float64 can resolve."""
    return max(QP_SHARE * rule.allowed_gap(primal, c_bar), 1e-13 * primal)


def solve(oracle: LinearOracle, rule: StoppingRule, *, max_cuts: int, observe: Observer | None = None) -> Solution:
    """Run CPA to the stopping rule. One pass an iteration."""
    progress = Progress(rule, observe)
    cut, loss = oracle.start()
    w_b, F_b = np.zeros(oracle.dimension), oracle.C * loss
    bundle = Bundle(oracle.dimension, oracle.c_bar, max_cuts)
    best_bound, witness = 0.0, Witness(np.zeros(oracle.dimension), 0.0)
    reason: StopReason | None = None
    while True:
        bundle.add(cut.a, cut.b)
        master = bundle.solve(qp_tolerance(rule, F_b, oracle.c_bar))
        w = master.w
        if master.lower_bound > best_bound:
            best_bound, witness = master.lower_bound, Witness(-w / oracle.c_bar, master.b)
        reason = progress.note(F_b, best_bound, 1.0, len(bundle), oracle)
        if reason is not None:
            return Solution(w_b, F_b, best_bound, witness, reason, progress.history)
        cut, loss = oracle.cut_at(w)
        F = 0.5 * vectors.dot(w, w) + oracle.C * loss
        w_b, F_b = min((w_b, F_b), (w, F), key=lambda point: point[1])
